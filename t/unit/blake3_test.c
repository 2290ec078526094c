
/*
 * The BLAKE3 that we link, not our use of it: that it is the real one (known
 * answers over the input pattern of its paper, byte i = i % 251, at the
 * lengths where its tree changes shape), that fed in pieces it gives the
 * same, and that the SIMD code is what runs.
 *
 * Called with --vectors it prints the answers instead, for t/02-blake3.t to
 * compare with another implementation.
 */

#include "ron_test.h"

#include <blake3.h>

#include "ron_digest.h"
#include "ron_port.h"


#ifdef RON_BLAKE3_BUNDLED
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#include <blake3_impl.h>
#pragma GCC diagnostic pop
#endif


/*
 * src/hash/ron_digest_nodes.c once more, with a processor that has only as
 * much as the test says: all widths of vectors are tried where the real one
 * has the widest.
 */

static unsigned  allowed;

static bool
has(const char *what)
{
#if defined(__x86_64__)
    return strcmp(what, "avx2") == 0
           ? allowed >= 8 && __builtin_cpu_supports("avx2")
           : allowed >= 16 && __builtin_cpu_supports("avx512f");
#else
    return what == NULL;
#endif
}

#define __builtin_cpu_supports(what)  has(what)
#define ron_digest_nodes              allowed_nodes
#define ron_digest_lanes              allowed_lanes
#define ron_digest_leaves             allowed_leaves

size_t allowed_lanes(void);
void allowed_nodes(ron_digest_t digest, const ron_hash_t *pairs, size_t n,
    ron_hash_t *out);
void allowed_leaves(ron_digest_t digest, const ron_str_t *entries, size_t n,
    ron_hash_t *out);

#include "ron_digest_nodes.c"

#undef ron_digest_nodes
#undef ron_digest_lanes
#undef ron_digest_leaves


#define INPUT_LEN  (1024 * 1024)

#define KEY      "whats the Elvish word for friend"
#define CONTEXT  "BLAKE3 2019-12-27 16:29:52 test vectors context"


static uint8_t  input[INPUT_LEN];


static const struct {
    size_t       len;
    const char  *plain;
    const char  *keyed;
    const char  *derived;
} vectors[] = {
    { 0,
      "af1349b9f5f9a1a6a0404dea36dcc949"
      "9bcb25c9adc112b7cc9a93cae41f3262",
      "92b2b75604ed3c761f9d6f62392c8a92"
      "27ad0ea3f09573e783f1498a4ed60d26",
      "2cc39783c223154fea8dfb7c1b1660f2"
      "ac2dcbd1c1de8277b0b0dd39b7e50d7d" },
    { 1,
      "2d3adedff11b61f14c886e35afa03673"
      "6dcd87a74d27b5c1510225d0f592e213",
      "6d7878dfff2f485635d39013278ae14f"
      "1454b8c0a3a2d34bc1ab38228a80c95b",
      "b3e2e340a117a499c6cf2398a19ee0d2"
      "9cca2bb7404c73063382693bf66cb06c" },
    { 2,
      "7b7015bb92cf0b318037702a6cdd81de"
      "e41224f734684c2c122cd6359cb1ee63",
      "5392ddae0e0a69d5f40160462cbd9bd8"
      "89375082ff224ac9c758802b7a6fd20a",
      "1f166565a7df0098ee65922d7fea425f"
      "b18b9943f19d6161e2d17939356168e6" },
    { 63,
      "e9bc37a594daad83be9470df7f7b3798"
      "297c3d834ce80ba85d6e207627b7db7b",
      "bb1eb5d4afa793c1ebdd9fb08def6c36"
      "d10096986ae0cfe148cd101170ce37ae",
      "b6451e30b953c206e34644c6803724e9"
      "d2725e0893039cfc49584f991f451af3" },
    { 64,
      "4eed7141ea4a5cd4b788606bd23f46e2"
      "12af9cacebacdc7d1f4c6dc7f2511b98",
      "ba8ced36f327700d213f120b1a207a3b"
      "8c04330528586f414d09f2f7d9ccb7e6",
      "a5c4a7053fa86b64746d4bb688d06ad1"
      "f02a18fce9afd3e818fefaa7126bf73e" },
    { 65,
      "de1e5fa0be70df6d2be8fffd0e99ceaa"
      "8eb6e8c93a63f2d8d1c30ecb6b263dee",
      "c0a4edefa2d2accb9277c371ac12fcdb"
      "b52988a86edc54f0716e1591b4326e72",
      "51fd05c3c1cfbc8ed67d139ad76f5cf8"
      "236cd2acd26627a30c104dfd9d3ff8a8" },
    { 127,
      "d81293fda863f008c09e92fc382a81f5"
      "a0b4a1251cba1634016a0f86a6bd640d",
      "c64200ae7dfaf35577ac5a9521c47863"
      "fb71514a3bcad18819218b818de85818",
      "c91c090ceee3a3ac81902da318380126"
      "25bbcd73fcb92e7d7e56f78deba4f0c3" },
    { 128,
      "f17e570564b26578c33bb7f44643f539"
      "624b05df1a76c81f30acd548c44b45ef",
      "b04fe15577457267ff3b6f3c947d93be"
      "581e7e3a4b018679125eaf86f6a628ec",
      "81720f34452f58a0120a58b6b4608384"
      "b5c51d11f39ce97161a0c0e442ca0225" },
    { 129,
      "683aaae9f3c5ba37eaaf072aed0f9e30"
      "bac0865137bae68b1fde4ca2aebdcb12",
      "d4a64dae6cdccbac1e5287f54f17c5f9"
      "85105457c1a2ec1878ebd4b57e20d38f",
      "938d2d4435be30eafdbb2b7031f7857c"
      "98b04881227391dc40db3c7b21f41fc1" },
    { 1023,
      "10108970eeda3eb932baac1428c7a216"
      "3b0e924c9a9e25b35bba72b28f70bd11",
      "c951ecdf03288d0fcc96ee3413563d8a"
      "6d3589547f2c2fb36d9786470f1b9d6e",
      "74a16c1c3d44368a86e1ca6df64be6a2"
      "f64cce8f09220787450722d85725dea5" },
    { 1024,
      "42214739f095a406f3fc83deb889744a"
      "c00df831c10daa55189b5d121c855af7",
      "75c46f6f3d9eb4f55ecaaee480db732e"
      "6c2105546f1e675003687c31719c7ba4",
      "7356cd7720d5b66b6d0697eb3177d9f8"
      "d73a4a5c5e968896eb6a689684302706" },
    { 1025,
      "d00278ae47eb27b34faecf67b4fe263f"
      "82d5412916c1ffd97c8cb7fb814b8444",
      "357dc55de0c7e382c900fd6e320acc04"
      "146be01db6a8ce7210b7189bd664ea69",
      "effaa245f065fbf82ac186839a249707"
      "c3bddf6d3fdda22d1b95a3c970379bcb" },
    { 2048,
      "e776b6028c7cd22a4d0ba182a8bf6220"
      "5d2ef576467e838ed6f2529b85fba24a",
      "879cf1fa2ea0e79126cb1063617a05b6"
      "ad9d0b696d0d757cf053439f60a99dd1",
      "7b2945cb4fef70885cc5d78a87bf6f62"
      "07dd901ff239201351ffac04e1088a23" },
    { 2049,
      "5f4d72f40d7a5f82b15ca2b2e44b1de3"
      "c2ef86c426c95c1af0b6879522563030",
      "9f29700902f7c86e514ddc4df1e3049f"
      "258b2472b6dd5267f61bf13983b78dd5",
      "2ea477c5515cc3dd606512ee72bb3e0e"
      "758cfae7232826f35fb98ca1bcbdf273" },
    { 3072,
      "b98cb0ff3623be03326b373de6b90952"
      "18513e64f1ee2edd2525c7ad1e5cffd2",
      "044a0e7b172a312dc02a4c9a818c036f"
      "fa2776368d7f528268d2e6b5df191770",
      "050df97f8c2ead654d9bb3ab8c9178ed"
      "cd902a32f8495949feadcc1e0480c46b" },
    { 3073,
      "7124b49501012f81cc7f11ca069ec922"
      "6cecb8a2c850cfe644e327d22d3e1cd3",
      "68dede9bef00ba89e43f31a6825f4cf4"
      "33389fedae75c04ee9f0cf16a427c95a",
      "72613c9ec9ff7e40f8f5c173784c532a"
      "d852e827dba2bf85b2ab4b76f7079081" },
    { 4096,
      "015094013f57a5277b59d8475c050104"
      "2c0b642e531b0a1c8f58d2163229e969",
      "befc660aea2f1718884cd8deb9902811"
      "d332f4fc4a38cf7c7300d597a081bfc0",
      "1e0d7f3db8c414c97c6307cbda6cd27a"
      "c3b030949da8e23be1a1a924ad2f25b9" },
    { 4097,
      "9b4052b38f1c5fc8b1f9ff7ac7b27cd2"
      "42487b3d890d15c96a1c25b8aa0fb995",
      "00df940cd36bb9fa7cbbc3556744e0db"
      "c8191401afe70520ba292ee3ca80abbc",
      "aca51029626b55fda7117b42a7c211f8"
      "c6e9ba4fe5b7a8ca922f34299500ead8" },
    { 8192,
      "aae792484c8efe4f19e2ca7d371d8c46"
      "7ffb10748d8a5a1ae579948f718a2a63",
      "dc9637c8845a770b4cbf76b8daec0eeb"
      "f7dc2eac11498517f08d44c8fc00d58a",
      "ad01d7ae4ad059b0d33baa3c01319dcf"
      "8088094d0359e5fd45d6aeaa8b2d0c3d" },
    { 8193,
      "bab6c09cb8ce8cf459261398d2e7aef3"
      "5700bf488116ceb94a36d0f5f1b7bc3b",
      "954a2a75420c8d6547e3ba5b98d963e6"
      "fa6491addc8c023189cc519821b4a1f5",
      "af1e0346e389b17c23200270a64aa4e1"
      "ead98c61695d917de7d5b00491c9b0f1" },
    { 16384,
      "f875d6646de28985646f34ee13be9a57"
      "6fd515f76b5b0a26bb324735041ddde4",
      "9e9fc4eb7cf081ea7c47d1807790ed21"
      "1bfec56aa25bb7037784c13c4b707b0d",
      "160e18b5878cd0df1c3af85eb25a0db5"
      "344d43a6fbd7a8ef4ed98d0714c3f7e1" },
    { 31744,
      "62b6960e1a44bcc1eb1a611a8d6235b6"
      "b4b78f32e7abc4fb4c6cdcce94895c47",
      "efa53b389ab67c593dba624d898d0f73"
      "53ab99e4ac9d42302ee64cbf9939a419",
      "39772aef80e0ebe60596361e45b061e8"
      "f417429d529171b6764468c22928e28e" },
    { 102400,
      "bc3e3d41a1146b069abffad3c0d44860"
      "cf664390afce4d9661f7902e7943e085",
      "1c35d1a5811083fd7119f5d5d1ba027b"
      "4d01c0c6c49fb6ff2cf75393ea5db4a7",
      "4652cff7a3f385a6103b5c260fc1593e"
      "13c778dbe608efb092fe7ee69df6e9c6" }
};


static void
hex(char *text, const uint8_t *bytes, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        (void) snprintf(text + i * 2, 3, "%02x", bytes[i]);
    }
}


static void
finish(blake3_hasher *h, size_t len, char text[65])
{
    uint8_t  out[32];

    blake3_hasher_update(h, input, len);
    blake3_hasher_finalize(h, out, sizeof(out));
    hex(text, out, sizeof(out));
}


static void
plain(size_t len, char text[65])
{
    blake3_hasher  h;

    blake3_hasher_init(&h);
    finish(&h, len, text);
}


static void
keyed(size_t len, char text[65])
{
    uint8_t        key[BLAKE3_KEY_LEN];
    blake3_hasher  h;

    memcpy(key, KEY, sizeof(key));
    blake3_hasher_init_keyed(&h, key);
    finish(&h, len, text);
}


static void
derived(size_t len, char text[65])
{
    blake3_hasher  h;

    blake3_hasher_init_derive_key(&h, CONTEXT);
    finish(&h, len, text);
}


static void
print_vectors(void)
{
    char    p[65], k[65], d[65];
    size_t  i;

    for (i = 0; i < ron_array_n(vectors); i++) {
        plain(vectors[i].len, p);
        keyed(vectors[i].len, k);
        derived(vectors[i].len, d);
        printf("%zu %s %s %s\n", vectors[i].len, p, k, d);
    }
}


static void
test_vectors(void)
{
    char    text[65];
    size_t  i;

    for (i = 0; i < ron_array_n(vectors); i++) {
        plain(vectors[i].len, text);
        is_str(text, vectors[i].plain, "%zu bytes", vectors[i].len);
        keyed(vectors[i].len, text);
        is_str(text, vectors[i].keyed, "%zu bytes, keyed", vectors[i].len);
        derived(vectors[i].len, text);
        is_str(text, vectors[i].derived, "%zu bytes, key derived",
               vectors[i].len);
    }
}


static void
test_pieces(void)
{
    size_t         i, done, n, step;
    uint8_t        whole[32], parts[32];
    blake3_hasher  h;

    static const size_t  steps[] = { 1, 63, 64, 65, 1000, 1024, 1025, 16384 };

    blake3_hasher_init(&h);
    blake3_hasher_update(&h, input, 102400);
    blake3_hasher_finalize(&h, whole, sizeof(whole));

    for (i = 0; i < ron_array_n(steps); i++) {

        step = steps[i];
        blake3_hasher_init(&h);

        for (done = 0; done < 102400; done += n) {
            n = ron_min(step, 102400 - done);
            blake3_hasher_update(&h, input + done, n);
        }

        blake3_hasher_finalize(&h, parts, sizeof(parts));
        is_mem(parts, whole, sizeof(whole), "in pieces of %zu", step);
    }
}


#ifdef RON_BLAKE3_BUNDLED


/* Whether the kernel names this flag among those of the processor. */

static bool
cpu_has(const char *flag)
{
    bool   found;
    char   line[8192], *token, *rest;
    FILE  *f;

    /* the processor that valgrind is ends with AVX2 */

    if (getenv("RON_UNDER_VALGRIND") != NULL
        && strncmp(flag, "avx512", 6) == 0)
    {
        return false;
    }

    f = fopen("/proc/cpuinfo", "r");
    if (f == NULL) {
        return false;
    }

    found = false;

    while (!found && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "flags", 5) != 0) {
            continue;
        }

        for (token = strtok_r(line, " \t\n", &rest);
             token != NULL && !found;
             token = strtok_r(NULL, " \t\n", &rest))
        {
            found = strcmp(token, flag) == 0;
        }
    }

    (void) fclose(f);

    return found;
}


static uint64_t
hasher_us(void)
{
    uint8_t        out[32];
    uint64_t       start;
    blake3_hasher  h;

    start = ron_clock_mono_us();
    blake3_hasher_init(&h);
    blake3_hasher_update(&h, input, INPUT_LEN);
    blake3_hasher_finalize(&h, out, sizeof(out));

    return ron_clock_mono_us() - start;
}


/*
 * The leaves of the same input through the portable code.  It does no parent
 * nodes and is therefore favoured.
 */

static uint64_t
portable_us(uint8_t *out)
{
    size_t          i;
    uint64_t        start;
    const uint8_t  *leaves[INPUT_LEN / BLAKE3_CHUNK_LEN];

    for (i = 0; i < ron_array_n(leaves); i++) {
        leaves[i] = input + i * BLAKE3_CHUNK_LEN;
    }

    start = ron_clock_mono_us();
    blake3_hash_many_portable(leaves, ron_array_n(leaves),
                              BLAKE3_CHUNK_LEN / BLAKE3_BLOCK_LEN, IV, 0,
                              true, 0, CHUNK_START, CHUNK_END, out);

    return ron_clock_mono_us() - start;
}


static void
test_simd(void)
{
    size_t           degree;
    unsigned         i;
    uint64_t         us, fast, slow;
    const uint8_t   *leaves[INPUT_LEN / BLAKE3_CHUNK_LEN];
    static uint8_t   a[INPUT_LEN / 32], b[INPUT_LEN / 32];

    degree = blake3_simd_degree();

    if (cpu_has("avx512f") && cpu_has("avx512vl")) {
        is_u64(degree, 16, "16 lanes where there is AVX-512");

    } else if (cpu_has("avx2")) {
        is_u64(degree, 8, "8 lanes where there is AVX2");

    } else if (cpu_has("sse4_1") || cpu_has("sse2")) {
        is_u64(degree, 4, "4 lanes where there is SSE");

    } else if (cpu_has("asimd")) {
        is_u64(degree, 4, "4 lanes where there is NEON");

    } else {
        skip("a processor without SIMD");
        return;
    }

    fast = slow = UINT64_MAX;

    for (i = 0; i < 50; i++) {
        us = hasher_us();
        fast = ron_min(fast, us);
        us = portable_us(a);
        slow = ron_min(slow, us);
    }

    /* four lanes gain less: their code has more to shuffle per byte */

    ok(degree >= 8 ? fast * 2 <= slow : fast * 3 <= slow * 2,
       "1 MiB in %" PRIu64 " us, portably %" PRIu64 " us",
       fast, slow);

    for (i = 0; i < ron_array_n(leaves); i++) {
        leaves[i] = input + i * BLAKE3_CHUNK_LEN;
    }

    blake3_hash_many(leaves, ron_array_n(leaves),
                     BLAKE3_CHUNK_LEN / BLAKE3_BLOCK_LEN, IV, 0, true, 0,
                     CHUNK_START, CHUNK_END, b);
    is_mem(b, a, sizeof(a), "SIMD and portable code agree on 1024 leaves");
}


#else


static void
test_simd(void)
{
    skip("the system's libblake3 does not show what it runs");
}


#endif


/* Nodes side by side are those that are made one by one. */

static void
test_nodes(ron_digest_t digest)
{
    size_t      n, i;
    uint64_t    wrong;
    ron_hash_t  pairs[600], want[300], got[300];

    wrong = 0;
    memcpy(pairs, input, sizeof(pairs));

    for (i = 0; i < ron_array_n(pairs); i++) {
        pairs[i].b[i % RON_HASH_LEN] ^= (uint8_t) (i >> 3);
    }

    for (n = 0; n <= ron_array_n(want); n++) {
        for (i = 0; i < n; i++) {
            ron_digest_node(digest, &pairs[2 * i], &pairs[2 * i + 1],
                            &want[i]);
        }

        memset(got, 0, sizeof(got));
        allowed_nodes(digest, pairs, n, got);
        wrong += memcmp(got, want, n * sizeof(ron_hash_t)) != 0;

        /* nothing behind the last one is touched */

        for (i = n; i < ron_array_n(got); i++) {
            wrong += got[i].b[0] != 0;
        }
    }

    is_u64(wrong, 0, "%s: up to %zu nodes, %zu at once",
           ron_digest_name(digest), ron_array_n(want), allowed_lanes());

    ron_digest_nodes(digest, pairs, ron_array_n(want), pairs);
    ok(memcmp(pairs, want, sizeof(want)) == 0, "and in their own place");
}


/* So are leaves, of one length, of many, or one that is far longer. */

static void
test_leaves(ron_digest_t digest)
{
    size_t      n, i, at, longest;
    uint64_t    wrong;
    ron_str_t   entries[70];
    ron_hash_t  want[70], got[70];

    wrong = 0;

    for (longest = 0; longest <= 1100; longest++) {
        n = longest % (ron_array_n(entries) + 1);

        for (i = 0; i < n; i++) {
            at = (longest * 131 + i * 17) % 2000;
            entries[i] = (ron_str_t) { longest - ron_min(longest,
                                                         i * (longest % 5)),
                                       input + at };
        }

        if (n > 0 && longest % 7 == 0) {
            entries[longest % n].len = longest * 5;
            entries[(longest + 1) % n] = ron_null_str;
        }

        for (i = 0; i < n; i++) {
            ron_digest_leaf(digest, entries[i].data, entries[i].len,
                            &want[i]);
        }

        memset(got, 0, sizeof(got));
        allowed_leaves(digest, entries, n, got);
        wrong += memcmp(got, want, n * sizeof(ron_hash_t)) != 0;

        for (i = n; i < ron_array_n(got); i++) {
            wrong += got[i].b[0] != 0;
        }

        ron_digest_leaves(digest, entries, n, got);
        wrong += memcmp(got, want, n * sizeof(ron_hash_t)) != 0;
    }

    is_u64(wrong, 0, "%s: leaves of any length, %zu at once",
           ron_digest_name(digest), allowed_lanes());
}


int
main(int argc, char **argv)
{
    size_t  i;

    for (i = 0; i < INPUT_LEN; i++) {
        input[i] = (uint8_t) (i % 251);
    }

    if (argc == 2 && strcmp(argv[1], "--vectors") == 0) {
        print_vectors();
        return 0;
    }

    test_vectors();
    test_pieces();
    test_simd();

    for (allowed = 4; allowed <= 16; allowed *= 2) {
        test_nodes(RON_DIGEST_BLAKE3);
        test_leaves(RON_DIGEST_BLAKE3);
    }

    test_nodes(RON_DIGEST_SHA256);
    test_leaves(RON_DIGEST_SHA256);

    return done_testing();
}
