
/*
 * A journal whose bytes were changed.  A small ledger is made once in a
 * region of memory; an input says which bytes of a copy to change.  Whoever
 * follows the copy refuses it, or is where the true ledger was after some
 * commit, to the last balance; and becomes its writer only at the true head,
 * which the published note vouches for.
 */

#include <stdio.h>
#include <stdlib.h>

#include "ron_fuzz.h"
#include "ron_digest.h"
#include "ron_engine.h"
#include "lib_ledger.h"


#define REGION   ((size_t) 65536)
#define PAGE     ((size_t) 4096)
#define ROWS     24
#define PRIVATE  "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"


static uint8_t       *clean, *copy;
static ledger_past_t  past;
static ron_signer_t  *signer;


static ron_status_t
start(uint8_t *region, bool create, ron_engine_t **en, ron_buf_t *why)
{
    ron_engine_conf_t  conf;

    ron_engine_conf_init(&conf);
    conf.store.url = "memory:64k";
    conf.store.region = region;
    conf.store.region_len = REGION;
    conf.store.digest = RON_DIGEST_BLAKE3;
    conf.store.ledger_id = 7;
    conf.store.create = create;
    conf.signer = signer;
    conf.tag_ram = 1;
    conf.key_ram = 1;

    return ron_engine_open(&conf, en, why);
}


static void
ask(ron_unit_t *u, ron_entry_t *op, unsigned i)
{
    static char  keys[ROWS][8];

    memset(u, 0, sizeof(ron_unit_t));
    memset(op, 0, sizeof(ron_entry_t));
    snprintf(keys[i], sizeof(keys[i]), "k%u", i);
    u->type = RON_UNIT_WALLET;
    u->key = ron_cstr(keys[i]);
    u->ops = op;
    u->op_n = 1;
    op->kind = i % 3 == 0 ? RON_KIND_MINT
               : i % 3 == 1 ? RON_KIND_TRANSFER : RON_KIND_HOLD;
    op->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    op->asset = ron_str("ron");
    op->account = ron_str("alice");
    op->amount = i % 3 == 0 ? 1000 : i;

    if (i % 3 != 0) {
        op->fields |= RON_F_TO | RON_F_NONCE;
        op->to = ron_str("bob");
        op->nonce = i;
    }
}


static void
decide(ron_engine_t *en, unsigned i)
{
    ron_unit_t    u, *units[1] = { &u };
    ron_batch_t  *batch;
    ron_entry_t   op;

    ask(&u, &op, i);
    RON_ASSERT(ron_engine_decide(en, UINT64_C(1700000000000) + i * 1000u, 1,
                                 units, 1) == RON_OK);
    RON_ASSERT(ron_engine_step(en) == RON_OK);
    RON_ASSERT(ron_engine_reap(en, &batch) == RON_OK);
    RON_ASSERT(batch->status == RON_OK
               && batch->outcomes[0].reason == RON_REASON_OK);
    ron_engine_release(en, batch);
}


static void
setup(void)
{
    ron_buf_t      why;
    ron_engine_t  *en;

    RON_ASSERT(ron_signer_parse(ron_str(PRIVATE), &signer) == RON_OK);
    clean = aligned_alloc(4096, REGION);
    copy = aligned_alloc(4096, REGION);
    RON_ASSERT(clean != NULL && copy != NULL);
    memset(clean, 0, REGION);

    ron_buf_init(&why, 0);
    RON_ASSERT(start(clean, true, &en, &why) == RON_OK);
    RON_ASSERT(ron_engine_follow(en, 4096, &why) == RON_ENOTFOUND);
    RON_ASSERT(ron_engine_acquire(en, &why) == RON_OK);
    ledger_past_add(&past, en);

    for (unsigned i = 0; i < ROWS; i++) {
        decide(en, i);
        ledger_past_add(&past, en);
    }

    ron_engine_close(en);
    ron_buf_free(&why);
}


/* Where: the pages of header, head and mark, the records, or the slots. */
static void
edit(fuzz_t *f, bool *head)
{
    size_t    at, from, n;
    uint8_t   how;
    unsigned  edits;

    edits = 1 + (fuzz_u8(f) & 7);

    for (unsigned i = 0; i < edits; i++) {
        how = fuzz_u8(f);
        at = fuzz_int(f, 2);
        at = (how & 3) == 0 ? 16 + at % 240
             : (how & 3) == 1 ? REGION - 1 - at % 1024
             : (how & 3) == 2 ? 5 * PAGE + at % (3 * PAGE) : at % REGION;

        switch (how >> 2 & 3) {
        case 0:
            copy[at] = fuzz_u8(f);
            n = 1;
            break;
        case 1:
            n = fuzz_u8(f);
            n = ron_min(n, REGION - at);
            from = fuzz_int(f, 2) % (REGION - n);
            memmove(copy + at, copy + from, n);
            break;
        default:
            copy[at] ^= (uint8_t) (1u << (fuzz_u8(f) & 7));
            n = 1;
        }

        *head = *head || (at + n > PAGE && at < 3 * PAGE) || at < PAGE;
    }

    /* What says that there is a ledger at all; else open() waits for it. */

    memcpy(copy, clean, 16);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    bool           head;
    fuzz_t         f = { data, data + len };
    unsigned       row;
    ron_buf_t      why;
    ron_engine_t  *en;
    ron_status_t   status;

    if (clean == NULL) {
        setup();
    }

    memcpy(copy, clean, REGION);
    head = false;
    edit(&f, &head);

    ron_buf_init(&why, 0);
    status = start(copy, false, &en, &why);

    if (status == RON_OK) {
        do {
            status = ron_engine_follow(en, 1 + fuzz_u8(&f) * 16u, &why);
        } while (status == RON_OK);

        if (status == RON_ENOTFOUND) {
            row = ledger_past_find(&past, en);
            status = ron_engine_acquire(en, &why);

            if (status == RON_OK) {
                row = ledger_past_find(&past, en);
                RON_ASSERT(row == ROWS || head);
            }
        }

        ron_engine_close(en);
    }

    ron_buf_free(&why);

    return 0;
}
