
/*
 * What a wallet knows of a ledger that is another server: the last commits of
 * its bus, its last beat, and balances that were read from it, in a region of
 * shared memory that all workers of the wallet have.
 *
 *     header     magic, length; who listens to the bus; the newest own write
 *     beat       the ledger was alive then, and its head was this
 *     ring       the last 1 024 commits, each with a filter of its accounts
 *     balances   read through: right as of a seq, and of a time
 *
 * Everything in it is a statement that stays true ("commit 42 followed 41 and
 * touched no account outside this filter", "at time T the head was 42"), never
 * a state that somebody must keep up.  So nobody has to enumerate balances to
 * invalidate them, and a writer that was killed, or two that overlap for a
 * moment, can cost a miss and never make a wrong balance look right: a balance
 * that was right as of seq s is right as of the newest commit if the commits
 * in the ring join on to each other from there back to s, and none of their
 * filters has the account.
 *
 * A filter has no false negatives.  It is keyed with a secret of both servers,
 * so that who reads the bus learns no accounts from it, by guessing either.
 *
 * Times are monotonic, of this machine.
 */

#ifndef RON_ZONE_BUS_H
#define RON_ZONE_BUS_H


#include "ron_siphash.h"
#include "ron_zone.h"


#define RON_BUS_FILTER_LEN  160         /* other servers have it too */
#define RON_BUS_CHECK_LEN   8
#define RON_BUS_MIN         (1024 * 1024)


typedef struct {
    ron_sipkey_t  sip;
    uint8_t       check[RON_BUS_CHECK_LEN];     /* may be seen by anybody */
} ron_bus_key_t;

typedef struct {
    uint8_t  b[RON_BUS_FILTER_LEN];
} ron_bus_filter_t;


/* Both sides make the same of the same secret, and the check says so. */
void ron_bus_key(ron_str_t secret, ron_bus_key_t *key);

void ron_bus_filter_add(ron_bus_filter_t *filter, const ron_bus_key_t *key,
    ron_str_t account);
bool ron_bus_filter_has(const ron_bus_filter_t *filter,
    const ron_bus_key_t *key, ron_str_t account);


/*
 * The data of an event of the ledger's ring: the root, and the filter behind
 * it.  RON_EINVAL: it has none.
 */
void ron_bus_event(ron_event_t *event, const ron_hash_t *root,
    const ron_bus_filter_t *filter);
ron_status_t ron_bus_event_get(const ron_event_t *event, ron_hash_t *root,
    ron_bus_filter_t *filter);

/*
 * Where a subscriber goes on that has all up to `seq`, whose root it names.
 * RON_OK: the ring has that commit, and *cursor is behind it.  RON_ENOTFOUND:
 * it is gone, or was another ledger's: *cursor, *seq and *root are those of
 * the newest.  RON_AGAIN: the ring is empty.
 */
ron_status_t ron_bus_join(const ron_zone_t *zone, uint64_t *seq,
    ron_hash_t *root, uint64_t *cursor);


/* Process-local: where things are. */
typedef struct {
    ron_zone_t  zone;               /* beat, rings and balances only */
} ron_bus_t;

/* As ron_zone_init() and ron_zone_adopt(); at least RON_BUS_MIN. */
ron_status_t ron_bus_init(void *region, size_t len, ron_bus_t *bus);
ron_status_t ron_bus_adopt(void *region, size_t len, ron_bus_t *bus);

/*
 * One process listens: the one that has the lease.  True: `pid` has it until
 * now + lease.  A process that dies loses it by time.
 */
bool ron_bus_lease(const ron_bus_t *bus, uint32_t pid, uint64_t now_ms,
    uint64_t lease_ms);
void ron_bus_leave(const ron_bus_t *bus, uint32_t pid);


/* ---- what the bus says -------------------------------------------------- */

/*
 * Whose filters the ring has.  The secret of this server may change: then
 * what is there says nothing any more, and own() follows a lost().
 */
bool ron_bus_is_own(const ron_bus_t *bus, const ron_bus_key_t *key);
void ron_bus_own(const ron_bus_t *bus, const ron_bus_key_t *key);

/* How far it was followed; RON_ENOTFOUND: nothing was heard yet. */
ron_status_t ron_bus_head(const ron_bus_t *bus, uint64_t *seq,
    ron_hash_t *root);

void ron_bus_commit(const ron_bus_t *bus, uint64_t seq, uint64_t count,
    const ron_hash_t *root, const ron_bus_filter_t *filter);

/* At that time the ledger lived, and had nothing newer than seq. */
void ron_bus_beat(const ron_bus_t *bus, uint64_t seq, uint64_t at_us);

/*
 * Commits were missed: the head is `seq` now, and no balance is believed any
 * more.  `other`: it may be another ledger than before.
 */
void ron_bus_lost(const ron_bus_t *bus, uint64_t seq, const ron_hash_t *root,
    bool other);

/* The ledger has told this wallet that `seq` is durable. */
void ron_bus_wrote(const ron_bus_t *bus, uint64_t seq);


/* ---- balances ----------------------------------------------------------- */

typedef struct {
    ron_zone_balance_t  balance;
    bool                sure;       /* nothing is known that changed it */
    uint64_t            stale_ms;   /* it was right so long ago */
} ron_bus_balance_t;

/*
 * What was read last.  Not `sure`: it changed, or may have; it was right as of
 * its time all the same.  RON_ENOTFOUND: nothing is known.
 */
ron_status_t ron_bus_get(const ron_bus_t *bus, const ron_bus_key_t *key,
    ron_str_t account, ron_str_t asset, uint64_t now_us,
    ron_bus_balance_t *is);

/* Whether the newest beat is not older than that. */
bool ron_bus_alive(const ron_bus_t *bus, uint64_t now_us, uint64_t window_ms);

/* A balance that was read; its seq, and the time at which it was right. */
void ron_bus_put(const ron_bus_t *bus, ron_str_t account, ron_str_t asset,
    const ron_zone_balance_t *balance, uint64_t at_us);


#endif /* RON_ZONE_BUS_H */
