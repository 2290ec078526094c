
/*
 * When history rests.
 *
 * It runs at idle priority, and yet a processor that it keeps busy is not one
 * that a payment finds idle, and what it writes goes to the disk that payments
 * wait for.  So its time is counted, waits for disk and processor included, and
 * while the journal grows it rests often, for as long as its share asks: for
 * who has slept the kernel has a turn saved up, even at idle priority, and lets
 * others wait for the end of it.
 */

#include "ron_history_impl.h"
#include "ron_port.h"


#define RON_HISTORY_LOOK_US   100000
#define RON_HISTORY_REST_US   1000

/* It pays no more than this for one long wait. */
#define RON_HISTORY_OWED_MAX  UINT64_C(200000)


static void ron_history_pace_look(ron_history_pace_t *pace, uint64_t now);


ron_status_t
ron_history_pace_open(ron_history_pace_t *pace, ron_store_t *store,
    uint32_t share, const _Atomic bool *abandoned)
{
    pace->share = share;
    pace->abandoned = abandoned;

    return share < 100 ? ron_reader_open(store, &pace->reader) : RON_OK;
}


void
ron_history_pace_close(ron_history_pace_t *pace)
{
    ron_reader_close(pace->reader);
    pace->reader = NULL;
}


void
ron_history_pace_begin(ron_history_pace_t *pace)
{
    pace->begun = ron_clock_mono_us();
}


void
ron_history_pace_rest(void *ctx)
{
    uint64_t             now;
    ron_history_pace_t  *pace = ctx;

    now = ron_clock_mono_us();
    pace->owed += (now - pace->begun) * (100 - pace->share) / pace->share;
    pace->owed = ron_min(pace->owed, RON_HISTORY_OWED_MAX);
    pace->begun = now;

    if (pace->reader != NULL && now - pace->looked >= RON_HISTORY_LOOK_US) {
        ron_history_pace_look(pace, now);
    }

    if (!pace->grows) {
        pace->owed = 0;
    }

    while (pace->owed >= RON_HISTORY_REST_US && !*pace->abandoned) {
        ron_sleep_us(RON_HISTORY_REST_US);
        pace->owed -= RON_HISTORY_REST_US;
        pace->rested += RON_HISTORY_REST_US;
        pace->begun = ron_clock_mono_us();
    }
}


/* Did anything come since it was looked at last? */

static void
ron_history_pace_look(ron_history_pace_t *pace, uint64_t now)
{
    ron_row_t  row;

    if (ron_reader_head(pace->reader, &row) == RON_OK) {
        pace->grows = row.seq != pace->head && pace->head != 0;
        pace->head = row.seq;
    }

    pace->looked = now;
}
