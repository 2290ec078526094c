
#include "ron_api_snapshot.h"
#include "ron_json.h"


static bool ron_api_snapshot_number(ron_str_t key);


ron_status_t
ron_api_snapshot_answer(ron_buf_t *out, const ron_msg_admin_t *admin,
    ron_api_error_t *err)
{
    uint32_t  i;
    uint64_t  number;

    switch (admin->status) {

    case RON_ADMIN_DONE:
        break;

    case RON_ADMIN_REFUSED:
        return ron_api_refuse(err, RON_REASON_CONFLICT,
                              "a snapshot is being taken, one at a time",
                              NULL);

    case RON_ADMIN_UNAVAILABLE:
        return ron_api_refuse(err, RON_REASON_NOT_FOUND,
                              "no ron_snapshot_dir is configured", NULL);

    default:
        return ron_api_refuse(err, RON_REASON_INTERNAL,
                              "the snapshot could not be begun", NULL);
    }

    ron_buf_put_u8(out, '{');

    for (i = 0; i < admin->pair_n; i++) {

        if (ron_api_snapshot_number(admin->pair[i].key)
            && ron_api_u64(admin->pair[i].value, &number) == RON_OK)
        {
            ron_json_put_member_u64(out, admin->pair[i].key, number);

        } else {
            ron_json_put_member(out, admin->pair[i].key,
                                admin->pair[i].value);
        }
    }

    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


static bool
ron_api_snapshot_number(ron_str_t key)
{
    uint32_t  i;

    static const char *const  numbers[] = {
        "began_ms", "done", "total", "seq", "first", "commits", "bytes",
        "took_ms"
    };

    for (i = 0; i < ron_array_n(numbers); i++) {
        if (ron_str_eq(key, ron_cstr(numbers[i]))) {
            return true;
        }
    }

    return false;
}
