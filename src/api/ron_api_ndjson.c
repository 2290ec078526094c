
#include <stdlib.h>

#include "ron_api_ndjson.h"


static ron_status_t ron_api_ndjson_line(ron_api_ndjson_t *nd,
    ron_str_t line, const ron_cap_t *cap, ron_api_error_t *err);
static ron_status_t ron_api_ndjson_room(ron_api_ndjson_t *nd, size_t len);
static ron_str_t ron_api_ndjson_keep(ron_api_ndjson_t *nd, ron_str_t s);
static bool ron_api_ndjson_blank(ron_str_t line);
static bool ron_api_ndjson_long(ron_str_t line);
static void ron_api_ndjson_bad(ron_buf_t *out, uint64_t line,
    const ron_api_error_t *err);
static void ron_api_ndjson_result(ron_buf_t *out, uint64_t line,
    ron_reason_t reason, ron_detail_t detail);


void
ron_api_ndjson_init(ron_api_ndjson_t *nd)
{
    memset(nd, 0, sizeof(ron_api_ndjson_t));
    ron_api_init(&nd->api);
    ron_buf_init(&nd->cap, 0);
}


ron_status_t
ron_api_ndjson_results(ron_str_t s, ron_api_results_t *results)
{
    *results = RON_API_RESULTS_REJECTED;

    if (s.data == NULL || ron_str_eq(s, ron_str("rejected"))) {
        return RON_OK;
    }

    if (ron_str_eq(s, ron_str("all"))) {
        *results = RON_API_RESULTS_ALL;
        return RON_OK;
    }

    if (ron_str_eq(s, ron_str("summary"))) {
        *results = RON_API_RESULTS_SUMMARY;
        return RON_OK;
    }

    return RON_EINVAL;
}


ron_status_t
ron_api_ndjson_feed(ron_buf_t *text, ron_str_t chunk)
{
    if (chunk.len > RON_FRAME_CHUNK) {
        return RON_EFULL;
    }

    ron_buf_put_str(text, chunk);

    return ron_buf_status(text);
}


size_t
ron_api_ndjson_cut(ron_str_t text, bool end)
{
    size_t          n, len;
    uint32_t        lines;
    const uint8_t  *p;

    n = ron_min(text.len, RON_API_NDJSON_BATCH);
    len = 0;

    for (lines = 0; lines < RON_API_NDJSON_LINES && len < n; lines++) {
        p = memchr(text.data + len, '\n', n - len);
        if (p == NULL) {
            break;
        }

        len = (size_t) (p - text.data) + 1;
    }

    if (lines == RON_API_NDJSON_LINES) {
        return len;
    }

    if (end && n == text.len) {
        return n;
    }

    if (len != 0) {
        return len;
    }

    p = text.len > n ? memchr(text.data + n, '\n', text.len - n) : NULL;

    if (p != NULL) {
        return (size_t) (p - text.data) + 1;
    }

    return end ? text.len : 0;
}


ron_status_t
ron_api_ndjson_parse(ron_api_ndjson_t *nd, ron_str_t text,
    const ron_cap_t *cap, ron_api_results_t results, ron_api_ndbatch_t *b,
    ron_buf_t *out)
{
    size_t           pos, end;
    uint32_t         off;
    ron_str_t        line;
    ron_status_t     rc;
    const uint8_t   *p;
    ron_api_error_t  err;

    if (ron_api_ndjson_room(nd, text.len) != RON_OK) {
        return RON_ENOMEM;
    }

    memset(&nd->unit, 0, sizeof(ron_unit_t));
    nd->unit.type = RON_UNIT_INGEST;
    nd->unit.ops = nd->ops;

    b->last = b->first - 1;
    b->bad_n = 0;
    ron_buf_reset(&b->lines);

    for (pos = 0; pos < text.len; pos = end + 1) {
        p = memchr(text.data + pos, '\n', text.len - pos);
        end = p != NULL ? (size_t) (p - text.data) : text.len;

        line.data = text.data + pos;
        line.len = end - pos;

        b->last++;

        if (ron_api_ndjson_blank(line)) {
            continue;
        }

        rc = ron_api_ndjson_line(nd, line, cap, &err);

        if (rc == RON_OK) {
            off = (uint32_t) (b->last - b->first);
            ron_buf_put(&b->lines, &off, sizeof(off));
            continue;
        }

        if (rc != RON_EINVAL) {
            return rc;
        }

        b->bad_n++;

        if (results != RON_API_RESULTS_SUMMARY) {
            ron_api_ndjson_bad(out, b->last, &err);
        }
    }

    b->op_n = nd->unit.op_n;

    return ron_buf_status(&b->lines);
}


static ron_status_t
ron_api_ndjson_line(ron_api_ndjson_t *nd, ron_str_t line,
    const ron_cap_t *cap, ron_api_error_t *err)
{
    bool          unknown;
    ron_unit_t   *one;
    ron_entry_t  *e;
    ron_status_t  rc;

    if (ron_api_ndjson_long(line)) {
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              "more than 64 KiB that is not white space",
                              NULL);
    }

    rc = ron_api_entry_parse(&nd->api, line, err);
    if (rc != RON_OK) {
        return rc;
    }

    one = &nd->api.unit;
    e = &one->ops[0];

    if (e->kind == RON_KIND_DEBIT || e->kind == RON_KIND_CREDIT) {
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              "the legs of a posting must come in one "
                              "application/json batch", "kind");
    }

    rc = ron_api_allow(cap, RON_CAP_SVC_LEDGER, one, &nd->cap, &unknown, err);
    if (rc != RON_OK) {
        return rc;
    }

    rc = ron_api_policy(nd->policy, cap, RON_CAP_ACT_INGEST, one, &unknown,
                        err);
    if (rc != RON_OK) {
        return rc;
    }

    if (nd->unit.op_n == RON_UNIT_OPS_MAX) {
        return ron_api_refuse(err, RON_REASON_TOO_LARGE, NULL, NULL);
    }

    e->asset = ron_api_ndjson_keep(nd, e->asset);
    e->account = ron_api_ndjson_keep(nd, e->account);
    e->to = ron_api_ndjson_keep(nd, e->to);
    e->id = ron_api_ndjson_keep(nd, e->id);
    e->capref = ron_api_ndjson_keep(nd, e->capref);

    nd->ops[nd->unit.op_n++] = *e;
    nd->unit.cap = one->cap;
    nd->unit.cap_daily = one->cap_daily;

    return RON_OK;
}


static ron_status_t
ron_api_ndjson_room(ron_api_ndjson_t *nd, size_t len)
{
    uint8_t  *p;

    nd->arena_len = 0;

    if (nd->ops == NULL) {
        nd->ops = calloc(RON_UNIT_OPS_MAX, sizeof(ron_entry_t));
        if (nd->ops == NULL) {
            return RON_ENOMEM;
        }
    }

    if (nd->arena_cap < len) {
        p = realloc(nd->arena, len);
        if (p == NULL) {
            return RON_ENOMEM;
        }

        nd->arena = p;
        nd->arena_cap = len;
    }

    return RON_OK;
}


/* The strings of an entry are shorter than its line, with their names. */

static ron_str_t
ron_api_ndjson_keep(ron_api_ndjson_t *nd, ron_str_t s)
{
    ron_str_t  kept;

    if (s.len == 0) {
        return s;
    }

    RON_ASSERT(s.len <= nd->arena_cap - nd->arena_len);

    kept.data = nd->arena + nd->arena_len;
    kept.len = s.len;

    memcpy(nd->arena + nd->arena_len, s.data, s.len);
    nd->arena_len += s.len;

    return kept;
}


static bool
ron_api_ndjson_blank(ron_str_t line)
{
    size_t  i;

    for (i = 0; i < line.len; i++) {
        if (line.data[i] != ' ' && line.data[i] != '\t'
            && line.data[i] != '\r')
        {
            return false;
        }
    }

    return true;
}


/*
 * An entry has no use for so much, however it is written; to unescape a string
 * of a line's length takes 5 ms, to see that it is there less than one.
 */

static bool
ron_api_ndjson_long(ron_str_t line)
{
    size_t  i, n;

    if (line.len <= RON_API_NDJSON_ENTRY) {
        return false;
    }

    n = 0;

    for (i = 0; i < line.len; i++) {
        n += line.data[i] > ' ';
    }

    return n > RON_API_NDJSON_ENTRY;
}


static void
ron_api_ndjson_bad(ron_buf_t *out, uint64_t line, const ron_api_error_t *err)
{
    const ron_reason_info_t  *info;

    info = ron_reason_info(err->reason);

    ron_buf_put_u8(out, '{');
    ron_json_put_member_u64(out, ron_str("line"), line);
    ron_json_put_member(out, ron_str("reason"), ron_cstr(info->ingest));
    ron_json_put_member(out, ron_str("detail"),
                        ron_cstr(err->text != NULL ? err->text
                                                   : info->title));

    if (err->field[0] != '\0') {
        ron_json_put_member(out, ron_str("field"), ron_cstr(err->field));
    }

    ron_buf_put_cstr(out, "}\n");
}


static void
ron_api_ndjson_result(ron_buf_t *out, uint64_t line, ron_reason_t reason,
    ron_detail_t detail)
{
    ron_buf_put_u8(out, '{');
    ron_json_put_member_u64(out, ron_str("line"), line);
    ron_json_put_member(out, ron_str("reason"),
                        ron_cstr(ron_reason_info(reason)->ingest));
    ron_json_put_member(out, ron_str("detail"),
                        ron_cstr(ron_detail_text(detail)));
    ron_buf_put_cstr(out, "}\n");
}


ron_status_t
ron_api_ndjson_answer(ron_buf_t *out, const ron_api_ndbatch_t *b,
    ron_api_results_t results, const ron_msg_batch_t *batch,
    const ron_outcome_t *outcome)
{
    uint32_t       i, off, accepted;
    uint64_t       first, last;
    ron_reason_t   reason;
    ron_result_t   all, *result;

    memset(&all, 0, sizeof(ron_result_t));
    first = 0;
    last = 0;
    accepted = 0;

    /* a unit that was refused as a whole may have no results */

    if (outcome != NULL) {
        all.reason = outcome->reason;
        all.detail = outcome->detail;

        if (outcome->reason == RON_REASON_OK && outcome->result_n != b->op_n) {
            return ron_corrupt();
        }
    }

    for (i = 0; outcome != NULL && i < b->op_n; i++) {
        result = outcome->result_n == b->op_n ? &outcome->results[i] : &all;
        memcpy(&off, b->lines.data + i * sizeof(off), sizeof(off));
        reason = result->reason;

        if (reason != RON_REASON_OK) {
            if (results != RON_API_RESULTS_SUMMARY) {
                ron_api_ndjson_result(out, b->first + off, reason,
                                      result->detail);
            }

            continue;
        }

        accepted++;
        first = first == 0 ? result->seq : ron_min(first, result->seq);
        last = ron_max(last, result->seq);

        if (results == RON_API_RESULTS_ALL) {
            ron_buf_put_u8(out, '{');
            ron_json_put_member_u64(out, ron_str("line"), b->first + off);
            ron_json_put_member_u64(out, ron_str("seq"), result->seq);
            ron_buf_put_cstr(out, "}\n");
        }
    }

    ron_buf_put_u8(out, '{');
    ron_json_put_member_u64(out, ron_str("batch"), b->number);
    ron_json_put_member_u64(out, ron_str("first_line"), b->first);
    ron_json_put_member_u64(out, ron_str("last_line"), b->last);
    ron_json_put_member_u64(out, ron_str("accepted"), accepted);
    ron_json_put_member_u64(out, ron_str("rejected"),
                            b->op_n - accepted + b->bad_n);

    if (accepted) {
        ron_json_put_member_u64(out, ron_str("seq_start"), first);
        ron_json_put_member_u64(out, ron_str("seq_end"), last);
        ron_json_put_key(out, ron_str("root"));
        ron_json_put_hex(out, (ron_str_t) { RON_HASH_LEN, batch->root.b });
    }

    ron_buf_put_cstr(out, "}\n");

    return ron_buf_status(out);
}
