
/*
 * Small configurations, explored to the end: wherever more than one task
 * could go on, the world is forked and each of them does.  Time stands still
 * while anybody can go on, and no wait ends by its time-out alone, so a lost
 * wake-up is a deadlock here and not a delay.
 *
 * Both run on the memory store: what is explored is the engine's queues, the
 * committer's thread and shutdown, not the disk.
 */

#include "sim.h"

#include <stdlib.h>

#include "ron_engine.h"


#define SMALL_SENDS_MAX  4
#define SMALL_QUEUE      2


static ron_engine_t  *small_en;
static uint32_t       small_sends;
static uint32_t       small_decided;
static uint32_t       small_reaped;
static bool           small_stop_early;
static ron_unit_t     small_units[SMALL_SENDS_MAX];
static ron_entry_t    small_ops[SMALL_SENDS_MAX];
static char           small_ids[SMALL_SENDS_MAX][4];


static void
small_notify(void *ctx)
{
    (void) ctx;
    sim_wake(&small_en, true);
}


static void
small_reap(void)
{
    ron_batch_t  *b;

    while (ron_engine_reap(small_en, &b) == RON_OK) {
        sim_check(b->status == RON_OK && b->count == 1
                  && b->seq == small_reaped + 1,
                  "batch %u came back as seq %llu", small_reaped,
                  (unsigned long long) b->seq);
        sim_check(b->outcomes[0].reason == RON_REASON_OK,
                  "unit %u was refused", small_reaped);
        small_reaped++;
        ron_engine_release(small_en, b);
    }
}


static void
small_end(void)
{
    ron_engine_close(small_en);
    sim_check(small_reaped <= small_decided, "more came back than was sent");
    sim_count(SIM_SCANS, 1);                    /* one interleaving */
    sim.over = true;
    sim_point();
}


static void
small_main(void *arg)
{
    uint32_t            room;
    ron_buf_t           why;
    ron_unit_t         *unit;
    ron_status_t        status;
    ron_engine_stat_t   st;
    ron_engine_conf_t   conf;

    (void) arg;
    ron_engine_conf_init(&conf);
    conf.store.url = "memory:1m";
    conf.store.ledger_id = 7;
    conf.store.create = true;
    conf.tag_ram = 4096;
    conf.key_ram = 4096;
    conf.queue_batches = SMALL_QUEUE;
    ron_buf_init(&why, 0);

    sim.oracle = true;                          /* no choices before it runs */
    status = ron_engine_open(&conf, &small_en, &why);
    RON_ASSERT(status == RON_OK);
    status = ron_engine_acquire(small_en, &why);
    RON_ASSERT(status == RON_OK);
    sim.oracle = false;
    status = ron_engine_start(small_en, small_notify, NULL);
    RON_ASSERT(status == RON_OK);

    while (small_decided < small_sends) {
        unit = &small_units[small_decided];
        room = ron_engine_room(small_en);
        sim_check(room <= SMALL_QUEUE, "room for %u", room);
        status = ron_engine_decide(small_en, 1000, 0, &unit, 1);

        if (status == RON_OK) {
            small_decided++;
            ron_engine_stat(small_en, &st);
            sim_check(st.queue_units <= SMALL_QUEUE, "%u units are queued",
                      st.queue_units);

        } else {
            sim_check(status == RON_AGAIN, "deciding failed");
            (void) sim_wait(&small_en, SIM_NEVER);
        }

        small_reap();
    }

    if (small_stop_early) {
        small_end();                            /* shutdown, work in hand */
        return;
    }

    while (small_reaped < small_decided) {
        small_reap();

        if (small_reaped < small_decided) {
            (void) sim_wait(&small_en, SIM_NEVER);
        }
    }

    small_end();
}


static void
small_run(uint32_t sends, bool stop_early, uint32_t preempt_max)
{
    uint32_t  i;

    small_sends = sends;
    small_stop_early = stop_early;

    for (i = 0; i < sends; i++) {
        small_ids[i][0] = 'i';
        small_ids[i][1] = (char) ('a' + i);
        small_ops[i].kind = RON_KIND_MINT;
        small_ops[i].fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT
                              | RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
        small_ops[i].asset = ron_str("ron");
        small_ops[i].account = ron_str("a");
        small_ops[i].amount = 1 + i;
        small_ops[i].id = ron_cstr(small_ids[i]);
        small_ops[i].nonce16[0] = (uint8_t) (i + 1);
        small_ops[i].source_ms = 1700000000000 + i;
        small_units[i].type = RON_UNIT_INGEST;
        small_units[i].op_n = 1;
        small_units[i].ops = &small_ops[i];
        small_units[i].source_us = i + 1;
    }

    sim.mono_us = 1000000;
    sim_preempt_set(preempt_max);
    (void) sim_task_start(sim_proc_new("small"), "main", small_main, NULL);
    sim_run();
}


void
small_engine(uint32_t preempt_max)
{
    small_run(3, false, preempt_max);
}


void
small_shutdown(uint32_t preempt_max)
{
    small_run(2, true, preempt_max);
}
