
#include "ron_reason.h"


#define RON_REASON_ROW(name, ingest, code, status, title)                     \
    { #name, ingest, code, status, title },

static const ron_reason_info_t  ron_reasons[RON_REASON_N] = {
    RON_REASONS(RON_REASON_ROW)
};


#define RON_DETAIL_ROW(name, text)  text,

static const char *const  ron_details[RON_DETAIL_N] = {
    RON_DETAILS(RON_DETAIL_ROW)
};


const ron_reason_info_t *
ron_reason_info(ron_reason_t reason)
{
    RON_ASSERT(reason < RON_REASON_N);

    return &ron_reasons[reason];
}


const char *
ron_detail_text(ron_detail_t detail)
{
    RON_ASSERT(detail < RON_DETAIL_N);

    return ron_details[detail];
}
