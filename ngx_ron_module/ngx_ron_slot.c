
/*
 * A process's counters in the zone.  A reload has the processes of before and
 * after side by side, and may find more of them than there are slots; those
 * that died are taken back once a second.  Who came too late asks again.
 */

#include "ngx_ron.h"


#define NGX_RON_SLOT_TRY  100


static ngx_int_t ngx_ron_slot_take(void);
static void ngx_ron_slot_again(ngx_event_t *ev);
static bool ngx_ron_slot_alive(void *ctx, uint32_t pid);


static ron_zone_t   *ngx_ron_slot_zone;
static uint32_t      ngx_ron_slot_no = RON_ZONE_SLOT_NONE;
static ngx_event_t   ngx_ron_slot_ev;


void
ngx_ron_slot_claim(ngx_cycle_t *cycle)
{
    ngx_event_t     *ev;
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf(cycle);

    if (rcf->cache_zone == NULL) {
        return;
    }

    ngx_ron_slot_zone = rcf->cache_zone->data;

    if (ngx_ron_slot_take() == NGX_OK) {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                  "ron: none of the %d slots of zone \"%V\" is free, this "
                  "process counts and admits nothing until one is",
                  RON_ZONE_SLOTS, &rcf->cache_zone->shm.name);

    ev = &ngx_ron_slot_ev;
    ev->handler = ngx_ron_slot_again;
    ev->data = &ngx_ron_ident;
    ev->log = cycle->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, NGX_RON_SLOT_TRY);
}


static ngx_int_t
ngx_ron_slot_take(void)
{
    if (ron_zone_slot_claim(ngx_ron_slot_zone, ngx_pid, &ngx_ron_slot_no)
        == RON_OK)
    {
        return NGX_OK;
    }

    (void) ron_zone_slots_sweep(ngx_ron_slot_zone, ngx_ron_slot_alive, NULL);

    return ron_zone_slot_claim(ngx_ron_slot_zone, ngx_pid, &ngx_ron_slot_no)
           == RON_OK ? NGX_OK : NGX_DECLINED;
}


static void
ngx_ron_slot_again(ngx_event_t *ev)
{
    if (ngx_ron_slot_take() != NGX_OK) {
        ngx_add_timer(ev, NGX_RON_SLOT_TRY);
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, ev->log, 0, "ron: this process has a slot");
}


void
ngx_ron_slot_leave(void)
{
    if (ngx_ron_slot_no != RON_ZONE_SLOT_NONE) {
        ron_zone_slot_leave(ngx_ron_slot_zone, ngx_ron_slot_no);
        ngx_ron_slot_no = RON_ZONE_SLOT_NONE;
    }
}


void
ngx_ron_slot_sweep(void)
{
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    if (rcf->cache_zone) {
        (void) ron_zone_slots_sweep(rcf->cache_zone->data,
                                    ngx_ron_slot_alive, NULL);
    }
}


static bool
ngx_ron_slot_alive(void *ctx, uint32_t pid)
{
    return kill((pid_t) pid, 0) == 0 || errno == EPERM;
}


ron_zone_t *
ngx_ron_zone(void)
{
    return ngx_ron_slot_zone;
}


uint32_t
ngx_ron_slot(void)
{
    return ngx_ron_slot_no;
}


void
ngx_ron_count_n(ron_metric_t metric, ngx_uint_t s, ngx_uint_t a,
    ngx_uint_t b, ngx_uint_t c, uint64_t n)
{
    if (ngx_ron_slot_zone) {
        ron_metric_add(ngx_ron_slot_zone, ngx_ron_slot_no, metric, s, a, b,
                       c, n);
    }
}


/* Without a slot nothing can be counted, and what is not bounded is refused. */

ngx_int_t
ngx_ron_admit(ron_admit_t queue, ngx_uint_t capacity)
{
    if (ngx_ron_slot_no == RON_ZONE_SLOT_NONE
        || ron_zone_admit(ngx_ron_slot_zone, ngx_ron_slot_no, queue, capacity)
           != RON_OK)
    {
        return NGX_BUSY;
    }

    return NGX_OK;
}


void
ngx_ron_admit_done(ron_admit_t queue)
{
    if (ngx_ron_slot_no != RON_ZONE_SLOT_NONE) {
        ron_zone_admit_done(ngx_ron_slot_zone, ngx_ron_slot_no, queue);
    }
}
