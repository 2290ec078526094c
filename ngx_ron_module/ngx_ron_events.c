
/*
 * The helper's side of the rings in the zone.
 *
 * Audit events of the wallet are put by the sequencer's thread, between a
 * commit and its answers, and only while somebody listens: it costs a payment
 * two hashes and a few dozen stores, and waits for nobody.
 *
 * The invalidator of balances reads the ledger bus with a cursor, on the event
 * loop.  Balances are published with their commit, so what it finds is the
 * exception: a commit that was published elsewhere (two masters have two
 * zones), or a bus that was faster than this loop.  Then nobody knows which
 * balances are right, and all of them are dropped; workers ask the ledger.
 */

#include "ngx_ron.h"
#include "ron_api_event.h"
#include "ron_port.h"


static void ngx_ron_events_put(void *ctx, const ron_event_t *event);


static ron_zone_bus_t  ngx_ron_events_bus;
static uint8_t         ngx_ron_events_key[RON_AUTH_KEY_LEN];


void
ngx_ron_events_init(ngx_cycle_t *cycle)
{
    ngx_memcpy(ngx_ron_events_key, ngx_ron_get_conf(cycle)->auth_key.b,
               RON_AUTH_KEY_LEN);

    if (ngx_ron_zone()) {
        ron_zone_bus_init(ngx_ron_zone(), &ngx_ron_events_bus);
    }
}


/* Also in a worker, of the ledger as of a wallet: both have the key. */

void
ngx_ron_bus_key(ngx_cycle_t *cycle, ron_bus_key_t *key)
{
    ron_str_t  secret;

    secret.len = RON_AUTH_KEY_LEN;
    secret.data = ngx_ron_get_conf(cycle)->auth_key.b;

    ron_bus_key(secret, key);
}


void
ngx_ron_events_on_unit(void *ctx, const ron_unit_t *unit,
    const ron_outcome_t *outcome, uint64_t time_ms)
{
    ron_zone_t  *zone;

    zone = ngx_ron_zone();

    if (zone == NULL || unit->type == RON_UNIT_INGEST
        || !ron_zone_ring_heard(zone, RON_RING_WALLET, ron_clock_wall_ms()))
    {
        return;
    }

    ron_api_event_unit(ngx_ron_events_key, unit, outcome, time_ms,
                       ngx_ron_events_put, zone);
}


static void
ngx_ron_events_put(void *ctx, const ron_event_t *event)
{
    (void) ron_zone_event_put(ctx, RON_RING_WALLET, event);
}


void
ngx_ron_events_follow(ngx_log_t *log)
{
    uint64_t     missed, depth;
    uint32_t     slot;
    ron_zone_t  *zone;

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return;
    }

    slot = ngx_ron_slot();
    depth = ron_zone_event_cursor(zone, RON_RING_LEDGER)
            - ngx_ron_events_bus.cursor;

    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_W, 0, RON_D_QUEUE_W_LEDGER,
                   0, 0, ngx_min(depth, RON_ZONE_EVENTS));
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_W, 0,
                   RON_D_QUEUE_W_LEDGER, 0, 0, RON_ZONE_EVENTS);

    missed = ron_zone_bus_follow(zone, &ngx_ron_events_bus);

    if (missed == 0) {
        return;
    }

    ngx_ron_count_n(RON_M_BUS_LAGGED_W, 0, RON_D_BUS_LEDGER, 0, 0, missed);
    ngx_ron_count_n(RON_M_QUEUE_DROPPED_W, 0, RON_D_QUEUE_W_LEDGER, 0, 0,
                    missed);

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "ron: the ledger bus went on without the cache of "
                  "balances: %uL commits were missed, all balances are "
                  "dropped", missed);
}
