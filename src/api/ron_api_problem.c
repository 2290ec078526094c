
/*
 * Problems: the one shape of every error, RFC 9457.
 *
 *     type  title  status  detail  code  retryable  corr_id  [details]
 *
 * Nothing that a client sent is repeated but the name of a member, and that
 * only as visible ASCII.
 */

#include "ron_api.h"


#define RON_API_TYPE  "docs/errors/"


static const char *ron_api_detail(const ron_api_error_t *err);
static void ron_api_details(ron_buf_t *out, const ron_api_error_t *err,
    const ron_reason_info_t *info);


static const struct {
    uint16_t      status;
    ron_reason_t  reason;
} ron_api_reasons[] = {
    { 401, RON_REASON_UNAUTH },
    { 403, RON_REASON_POLICY_DENIED },
    { 404, RON_REASON_NOT_FOUND },
    { 405, RON_REASON_METHOD },
    { 409, RON_REASON_CONFLICT },
    { 412, RON_REASON_PRECONDITION },
    { 413, RON_REASON_TOO_LARGE },
    { 415, RON_REASON_MEDIA_TYPE },
    { 429, RON_REASON_BUSY },
    { 502, RON_REASON_UPSTREAM },
    { 503, RON_REASON_RETRY_LATER },
    { 504, RON_REASON_UPSTREAM },
};


ron_status_t
ron_api_refuse(ron_api_error_t *err, ron_reason_t reason, const char *text,
    const char *field)
{
    size_t  len;

    memset(err, 0, sizeof(ron_api_error_t));

    err->reason = reason;
    err->text = text;

    if (field != NULL) {
        len = strlen(field);
        len = ron_min(len, sizeof(err->field) - 1);
        memcpy(err->field, field, len);
    }

    return RON_EINVAL;
}


uint16_t
ron_api_status(const ron_api_error_t *err)
{
    return err->status ? err->status : ron_reason_info(err->reason)->status;
}


bool
ron_api_retryable(uint16_t status)
{
    return status == 429 || status == 503;
}


/* A queue has room again soon; what made a 503 takes longer. */
unsigned
ron_api_retry_after(uint16_t status)
{
    return status == 503 ? 2 : 1;
}


ron_reason_t
ron_api_reason(uint16_t status)
{
    size_t  i;

    for (i = 0; i < ron_array_n(ron_api_reasons); i++) {
        if (ron_api_reasons[i].status == status) {
            return ron_api_reasons[i].reason;
        }
    }

    return status >= 500 ? RON_REASON_INTERNAL : RON_REASON_MALFORMED;
}


ron_status_t
ron_api_problem(ron_buf_t *out, const ron_api_error_t *err, ron_str_t corr_id)
{
    uint16_t                  status;
    const ron_reason_info_t  *info;

    info = ron_reason_info(err->reason);
    status = ron_api_status(err);

    ron_buf_put_cstr(out, "{\"type\":\"" RON_API_TYPE);
    ron_buf_put_cstr(out, info->code);
    ron_buf_put_cstr(out, ".md\"");
    ron_json_put_member(out, ron_str("title"), ron_cstr(info->title));
    ron_json_put_member_u64(out, ron_str("status"), status);
    ron_json_put_member(out, ron_str("detail"),
                        ron_cstr(ron_api_detail(err)));
    ron_json_put_member(out, ron_str("code"), ron_cstr(info->code));
    ron_json_put_member_bool(out, ron_str("retryable"),
                             ron_api_retryable(status));
    ron_json_put_member(out, ron_str("corr_id"), corr_id);
    ron_api_details(out, err, info);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


static const char *
ron_api_detail(const ron_api_error_t *err)
{
    const char  *text;

    if (err->text != NULL) {
        return err->text;
    }

    text = ron_detail_text(err->detail);

    return text[0] != '\0' ? text : ron_reason_info(err->reason)->title;
}


static void
ron_api_details(ron_buf_t *out, const ron_api_error_t *err,
    const ron_reason_info_t *info)
{
    ron_json_put_key(out, ron_str("details"));
    ron_buf_put_u8(out, '{');
    ron_json_put_member(out, ron_str("reason"), ron_cstr(info->ingest));

    if (err->field[0] != '\0') {
        ron_json_put_member(out, ron_str("field"), ron_cstr(err->field));
    }

    if (err->has_value) {
        ron_json_put_member_u64(out, ron_str("expected"), err->value);
    }

    ron_buf_put_u8(out, '}');
}
