
/*
 * Views, and how a directory becomes one.
 *
 * The segments of a view are a chain: each begins with the seq that the one
 * before it ends with, the first with expired_seq.  A link that is missing or
 * damaged ends the chain there.  What lies behind it is given up too: it
 * would only be right together with the tags of the gap, which from then on
 * would be spread over files in a way that no interval describes.
 *
 * Reference counts of segments are changed by whoever may write views: the
 * background thread, or the owner while there is none.
 */

#include "ron_tag_view.h"

#include "ron_log.h"

#include <stdio.h>
#include <stdlib.h>


typedef struct {
    const ron_tag_place_t  *place;
    const ron_tag_view_t   *view;
    uint64_t                next_no;
    bool                    unlink;
} ron_tag_sweep_t;


static ron_tag_view_t *ron_tag_view_new(uint32_t max);
static void ron_tag_view_add(ron_tag_view_t *view, ron_tag_segment_t *segment);
static ron_status_t ron_tag_view_chain(const ron_tag_place_t *place,
    const ron_tag_manifest_t *m, const ron_tag_view_t *old, bool again,
    ron_tag_view_t *view, bool *whole);
static ron_status_t ron_tag_view_link(const ron_tag_place_t *place,
    const ron_tag_info_t *info, const ron_tag_view_t *old,
    ron_tag_segment_t **segment);
static ron_status_t ron_tag_view_swept(void *ctx, const char *name);


static ron_tag_view_t *
ron_tag_view_new(uint32_t max)
{
    ron_tag_view_t  *view;

    view = calloc(1, sizeof(ron_tag_view_t));
    if (view == NULL) {
        return NULL;
    }

    view->segment = calloc((size_t) max + 1, sizeof(ron_tag_segment_t *));
    view->probe = calloc((size_t) max + 1, sizeof(ron_tag_probe_t));

    if (view->segment == NULL || view->probe == NULL) {
        ron_tag_view_free(view);
        return NULL;
    }

    return view;
}


static void
ron_tag_view_add(ron_tag_view_t *view, ron_tag_segment_t *segment)
{
    segment->refs++;

    view->segment[view->n] = segment;
    view->probe[view->n].line = segment->line;
    view->probe[view->n].line_n = segment->line_n;

    view->n++;
    view->covered = segment->info.seq_hi;
    view->covered_ms = segment->info.newest_ms;
}


ron_status_t
ron_tag_view_empty(ron_tag_view_t **view)
{
    *view = ron_tag_view_new(0);

    return *view == NULL ? RON_ENOMEM : RON_OK;
}


void
ron_tag_view_free(ron_tag_view_t *view)
{
    uint32_t            i;
    ron_tag_segment_t  *segment;

    if (view == NULL) {
        return;
    }

    for (i = 0; i < view->n; i++) {

        segment = view->segment[i];

        if (--segment->refs == 0) {
            ron_tag_segment_free(segment);
        }
    }

    free(view->segment);
    free(view->probe);
    free(view);
}


ron_status_t
ron_tag_view_replace(const ron_tag_view_t *old, uint32_t at, uint32_t n,
    ron_tag_segment_t *segment, ron_tag_view_t **view)
{
    uint32_t         i;
    ron_tag_view_t  *v;

    RON_ASSERT(at + n <= old->n);

    *view = NULL;

    v = ron_tag_view_new(old->n + 1);
    if (v == NULL) {
        return RON_ENOMEM;
    }

    v->expired_seq = old->expired_seq;
    v->expired_ms = old->expired_ms;
    v->covered = old->expired_seq;
    v->covered_ms = old->expired_ms;

    for (i = 0; i < at; i++) {
        ron_tag_view_add(v, old->segment[i]);
    }

    if (segment != NULL) {
        ron_tag_view_add(v, segment);
    }

    for (i = at + n; i < old->n; i++) {
        ron_tag_view_add(v, old->segment[i]);
    }

    *view = v;

    return RON_OK;
}


ron_status_t
ron_tag_view_load(const ron_tag_place_t *place, const ron_tag_view_t *old,
    bool again, ron_tag_view_t **view, uint64_t *next_no, bool *whole)
{
    ron_status_t        status;
    ron_tag_view_t     *v;
    ron_tag_manifest_t  m;

    *view = NULL;
    *next_no = 0;
    *whole = true;

    status = ron_tag_manifest_read(place, &m);

    if (status == RON_ECORRUPT) {
        ron_log(RON_LOG_ERROR, "tags: manifest of \"%s\" in \"%s\" is left "
                "out: %s", place->name, place->dir, ron_status_name(status));
        *whole = false;

    } else if (status != RON_OK && status != RON_ENOTFOUND) {
        ron_log(RON_LOG_ERROR, "tags: manifest of \"%s\" in \"%s\" cannot be "
                "used: %s", place->name, place->dir, ron_status_name(status));
        return status;
    }

    /* after an error this is a manifest of nothing */

    v = ron_tag_view_new(m.n);

    status = v == NULL ? RON_ENOMEM
                       : ron_tag_view_chain(place, &m, old, again, v, whole);

    *next_no = m.next_no;

    ron_tag_manifest_free(&m);

    if (status != RON_OK) {
        ron_tag_view_free(v);
        return status;
    }

    *view = v;

    return RON_OK;
}


static ron_status_t
ron_tag_view_chain(const ron_tag_place_t *place, const ron_tag_manifest_t *m,
    const ron_tag_view_t *old, bool again, ron_tag_view_t *view, bool *whole)
{
    uint32_t            i;
    ron_status_t        status;
    ron_tag_segment_t  *segment;

    view->expired_seq = m->expired_seq;
    view->expired_ms = m->expired_ms;
    view->covered = m->expired_seq;
    view->covered_ms = m->expired_ms;

    for (i = 0; i < m->n; i++) {

        if (m->info[i].seq_lo != view->covered
            || m->info[i].seq_hi < m->info[i].seq_lo)
        {
            status = ron_corrupt();

        } else {
            status = ron_tag_view_link(place, &m->info[i], old, &segment);
        }

        if (status == RON_ENOMEM || status == RON_EIO) {
            return status;
        }

        if (status == RON_ENOTFOUND && again) {
            return RON_AGAIN;
        }

        if (status != RON_OK) {
            ron_log(RON_LOG_ERROR, "tags: segment %016llx of \"%s\" in \"%s\" "
                    "is left out: %s; %u of %u segments stay",
                    (unsigned long long) m->info[i].no, place->name,
                    place->dir, ron_status_name(status), view->n, m->n);
            *whole = false;
            break;
        }

        ron_tag_view_add(view, segment);
    }

    return RON_OK;
}


static ron_status_t
ron_tag_view_link(const ron_tag_place_t *place, const ron_tag_info_t *info,
    const ron_tag_view_t *old, ron_tag_segment_t **segment)
{
    uint32_t            i;
    ron_status_t        status;
    ron_tag_segment_t  *s;

    for (i = 0; old != NULL && i < old->n; i++) {

        s = old->segment[i];

        if (s->info.no == info->no
            && ron_hash_eq(&s->info.header, &info->header))
        {
            status = ron_tag_segment_verify(place, info);
            *segment = status == RON_OK ? s : NULL;
            return status;
        }
    }

    return ron_tag_segment_open(place, info, segment);
}


ron_status_t
ron_tag_view_save(const ron_tag_place_t *place, const ron_tag_view_t *view,
    uint64_t next_no, bool *replaced)
{
    uint32_t            i;
    ron_status_t        status;
    ron_tag_manifest_t  m;

    *replaced = false;

    memset(&m, 0, sizeof(m));

    m.next_no = next_no;
    m.expired_seq = view->expired_seq;
    m.expired_ms = view->expired_ms;
    m.n = view->n;

    m.info = calloc((size_t) view->n + 1, sizeof(ron_tag_info_t));
    if (m.info == NULL) {
        return RON_ENOMEM;
    }

    for (i = 0; i < view->n; i++) {
        m.info[i] = view->segment[i]->info;
    }

    status = ron_tag_manifest_write(place, &m, replaced);

    ron_tag_manifest_free(&m);

    return status;
}


ron_status_t
ron_tag_view_sweep(const ron_tag_place_t *place, const ron_tag_view_t *view,
    bool unlink, uint64_t *next_no)
{
    ron_status_t     status;
    ron_tag_sweep_t  sweep;

    sweep.place = place;
    sweep.view = view;
    sweep.next_no = *next_no;
    sweep.unlink = unlink;

    status = ron_dir_each(place->dir, ron_tag_view_swept, &sweep);

    *next_no = sweep.next_no;

    return status;
}


static ron_status_t
ron_tag_view_swept(void *ctx, const char *name)
{
    char              path[RON_TAG_PATH_MAX];
    uint32_t          i;
    uint64_t          no;
    ron_tag_sweep_t  *sweep;

    sweep = ctx;

    if (ron_tag_segment_is(sweep->place, name, &no)) {

        if (no >= sweep->next_no && no != UINT64_MAX) {
            sweep->next_no = no + 1;
        }

        for (i = 0; i < sweep->view->n; i++) {
            if (sweep->view->segment[i]->info.no == no) {
                return RON_OK;
            }
        }

    } else if (!ron_tag_manifest_is_temp(sweep->place, name)) {
        return RON_OK;
    }

    if (sweep->unlink
        && snprintf(path, sizeof(path), "%s/%s", sweep->place->dir, name)
           < (int) sizeof(path))
    {
        (void) ron_file_unlink(path);
    }

    return RON_OK;
}
