
/*
 * The files of tags.  A segment or manifest that was changed anywhere is
 * refused, or says what the unchanged one said: it never hides a tag, and
 * never makes one up.  A manifest of any bytes with a right checksum is read
 * as what would be written, or refused.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ron_fuzz.h"
#include "ron_digest.h"
#include "ron_tag_manifest.h"


#define TAGS_N    500
#define FILE_MAX  65536


static char             dir[64];
static char             seg_path[RON_TAG_PATH_MAX];
static char             man_path[256];
static uint8_t          file[FILE_MAX];
static uint8_t          changed[FILE_MAX];
static size_t           file_len;
static ron_tag_info_t   info;
static ron_tag_place_t  place;


static ron_tag_key_t
nth_key(uint64_t i)
{
    return (ron_tag_key_t) { i * UINT64_C(0x20000000000000),
                             i * UINT64_C(0x9e3779b97f4a7c15) };
}


static void
put_file(const char *path, const void *bytes, size_t len)
{
    FILE  *f;

    f = fopen(path, "wb");
    RON_ASSERT(f != NULL);
    RON_ASSERT(fwrite(bytes, 1, len, f) == len);
    RON_ASSERT(fclose(f) == 0);
}


static size_t
get_file(const char *path, void *bytes, size_t max)
{
    FILE    *f;
    size_t   n;

    f = fopen(path, "rb");
    RON_ASSERT(f != NULL);
    n = fread(bytes, 1, max, f);
    RON_ASSERT(n < max && fclose(f) == 0);

    return n;
}


static void
clean(void)
{
    (void) unlink(seg_path);
    (void) unlink(man_path);
    (void) rmdir(dir);
}


static void
setup(void)
{
    ron_tag_build_t     b;
    ron_tag_segment_t  *s;

    snprintf(dir, sizeof(dir), "%s/ron-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    RON_ASSERT(mkdtemp(dir) != NULL);
    place = (ron_tag_place_t) { dir, "tags", 7 };
    snprintf(man_path, sizeof(man_path), "%s/tags.manifest", dir);
    ron_tag_segment_path(seg_path, &place, 1);
    (void) atexit(clean);

    info.no = 1;
    info.tier = 0;
    info.seq_lo = 0;
    info.seq_hi = TAGS_N;
    info.oldest_ms = 1;
    info.newest_ms = 2;

    RON_ASSERT(ron_tag_build_start(&b, &place, &info, TAGS_N, NULL, NULL)
               == RON_OK);

    for (uint64_t i = 1; i <= TAGS_N; i++) {
        RON_ASSERT(ron_tag_build_add(&b, nth_key(i), i) == RON_OK);
    }

    RON_ASSERT(ron_tag_build_end(&b, &s) == RON_OK);
    info = s->info;
    ron_tag_segment_free(s);
    file_len = get_file(seg_path, file, sizeof(file));
}


/* Changes some bytes, or the length.  False: nothing is different. */
static bool
edit(fuzz_t *f, uint8_t *bytes, size_t *len)
{
    bool      cut;
    size_t    at;
    unsigned  n;

    cut = false;
    n = 1 + (fuzz_u8(f) & 3);

    for (unsigned i = 0; i < n; i++) {
        at = fuzz_int(f, 2) % *len;

        switch (fuzz_u8(f) % 6) {
        case 0:
            if (at > 0) {
                *len = at;
                cut = true;
            }
            break;
        case 1:
            bytes[at] = fuzz_u8(f);
            break;
        default:
            bytes[at] ^= (uint8_t) (1u << (fuzz_u8(f) & 7));
        }
    }

    return cut;
}


static void
fuzz_segment(fuzz_t *f)
{
    size_t              len;
    uint64_t            seq;
    ron_status_t        status;
    ron_tag_segment_t  *s;

    len = file_len;
    memcpy(changed, file, len);
    (void) edit(f, changed, &len);
    put_file(seg_path, changed, len);

    status = ron_tag_segment_open(&place, &info, &s);

    if (status != RON_OK) {
        RON_ASSERT(status == RON_ECORRUPT && s == NULL);
        return;
    }

    for (uint64_t i = 1; i <= TAGS_N; i++) {
        status = ron_tag_segment_find(s, nth_key(i), &seq);
        RON_ASSERT(status == RON_OK ? seq == i : status == RON_ECORRUPT);

        status = ron_tag_segment_find(s, (ron_tag_key_t) {
                                            nth_key(i).hi + 1 + fuzz_u8(f),
                                            nth_key(i).lo }, &seq);
        RON_ASSERT(status == RON_ENOTFOUND || status == RON_ECORRUPT);
    }

    if (ron_tag_segment_check(s) == RON_OK) {
        RON_ASSERT(len == file_len && memcmp(file, changed, len) == 0);
    }

    ron_tag_segment_free(s);
}


static bool
same_manifest(const ron_tag_manifest_t *a, const ron_tag_manifest_t *b)
{
    bool  same;

    same = a->next_no == b->next_no && a->expired_seq == b->expired_seq
           && a->expired_ms == b->expired_ms && a->n == b->n;

    for (uint32_t i = 0; same && i < a->n; i++) {
        same = a->info[i].no == b->info[i].no
               && a->info[i].tier == b->info[i].tier
               && a->info[i].seq_lo == b->info[i].seq_lo
               && a->info[i].seq_hi == b->info[i].seq_hi
               && a->info[i].oldest_ms == b->info[i].oldest_ms
               && a->info[i].newest_ms == b->info[i].newest_ms
               && a->info[i].tag_n == b->info[i].tag_n
               && ron_hash_eq(&a->info[i].header, &b->info[i].header);
    }

    return same;
}


static void
fuzz_manifest(fuzz_t *f)
{
    bool                replaced;
    size_t              len;
    uint64_t            seq;
    ron_status_t        status;
    ron_tag_info_t      infos[8];
    ron_tag_manifest_t  m, back;

    memset(&m, 0, sizeof(m));
    memset(infos, 0, sizeof(infos));
    m.n = fuzz_u8(f) % 9;
    m.info = infos;
    m.expired_seq = fuzz_u8(f);
    m.expired_ms = fuzz_u8(f);
    seq = m.expired_seq;

    for (uint32_t i = 0; i < m.n; i++) {
        infos[i].no = i + 1;
        infos[i].tier = fuzz_u8(f) & 3;
        infos[i].seq_lo = seq;
        seq += 1 + fuzz_u8(f);
        infos[i].seq_hi = seq;
        infos[i].oldest_ms = i ? infos[i - 1].newest_ms : m.expired_ms;
        infos[i].newest_ms = infos[i].oldest_ms + fuzz_u8(f);
        infos[i].tag_n = 1 + fuzz_u8(f);
        memset(infos[i].header.b, fuzz_u8(f), RON_HASH_LEN);
    }

    m.next_no = m.n + 1 + fuzz_u8(f);

    RON_ASSERT(ron_tag_manifest_write(&place, &m, &replaced) == RON_OK);
    status = ron_tag_manifest_read(&place, &back);
    RON_ASSERT(status == RON_OK && same_manifest(&m, &back));
    ron_tag_manifest_free(&back);

    len = get_file(man_path, changed, sizeof(changed));
    (void) edit(f, changed, &len);
    put_file(man_path, changed, len);

    if (ron_tag_manifest_read(&place, &back) == RON_OK) {
        RON_ASSERT(same_manifest(&m, &back));
        ron_tag_manifest_free(&back);
    }
}


static void
fuzz_sealed(fuzz_t *f)
{
    bool                replaced;
    size_t              len, again;
    ron_str_t           s;
    ron_buf_t           bytes;
    ron_hash_t          sum;
    ron_tag_manifest_t  m;

    ron_buf_init(&bytes, 0);

    if (fuzz_u8(f) & 3) {
        ron_buf_put_cstr(&bytes, "RONTAGM\1");
        ron_buf_put_u64(&bytes, place.ledger_id);
        ron_buf_put_lstr(&bytes, ron_str("tags"));
    }

    s = fuzz_rest(f);
    ron_buf_put_str(&bytes, s);
    ron_blake3(bytes.data, bytes.len, &sum);
    ron_buf_put(&bytes, sum.b, RON_HASH_LEN);
    put_file(man_path, bytes.data, bytes.len);

    if (ron_tag_manifest_read(&place, &m) == RON_OK) {
        RON_ASSERT(ron_tag_manifest_write(&place, &m, &replaced) == RON_OK);
        len = bytes.len;
        again = get_file(man_path, changed, sizeof(changed));
        RON_ASSERT(again == len && memcmp(changed, bytes.data, len) == 0);
        ron_tag_manifest_free(&m);
    }

    ron_buf_free(&bytes);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  what;

    if (file_len == 0) {
        setup();
    }

    what = fuzz_u8(&f);

    switch (what % 3) {
    case 0:
        fuzz_segment(&f);
        break;
    case 1:
        fuzz_manifest(&f);
        break;
    default:
        fuzz_sealed(&f);
    }

    return 0;
}
