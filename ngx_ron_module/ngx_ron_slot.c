
#include "ngx_ron.h"


static bool ngx_ron_slot_alive(void *ctx, uint32_t pid);


static ron_zone_t  *ngx_ron_slot_zone;
static uint32_t     ngx_ron_slot_no = RON_ZONE_SLOT_NONE;


void
ngx_ron_slot_claim(ngx_cycle_t *cycle)
{
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf(cycle);

    if (rcf->cache_zone == NULL) {
        return;
    }

    ngx_ron_slot_zone = rcf->cache_zone->data;

    if (ron_zone_slot_claim(ngx_ron_slot_zone, ngx_pid, &ngx_ron_slot_no)
        != RON_OK)
    {
        ngx_ron_slot_no = RON_ZONE_SLOT_NONE;
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "ron: no slot is free in zone \"%V\", this process is "
                      "not counted", &rcf->cache_zone->shm.name);
    }
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
