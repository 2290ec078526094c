
/*
 * Text codecs.  Each value has exactly one accepted text: what an encoder
 * writes is the only thing its decoder takes, so that a value that went
 * through text can be compared, signed and hashed as bytes.
 *
 * Encoders write no terminator unless they say so and return the number of
 * characters; the caller gives room.  Decoders return RON_EINVAL for a
 * malformed text and RON_ERANGE when the value does not fit, and then have
 * zeroed their result (for byte decoders: the length).
 */

#ifndef RON_CODEC_H
#define RON_CODEC_H


#include "ron.h"


/* Standard base64 with its padding; and base64url without any. */

#define ron_base64_len(n)     (((n) + 2) / 3 * 4)
#define ron_base64url_len(n)  ((n) / 3 * 4 + ((n) % 3 ? (n) % 3 + 1 : 0))

size_t ron_base64_encode(ron_str_t in, char *out);
size_t ron_base64url_encode(ron_str_t in, char *out);

/* RON_ERANGE when the bytes would be more than `cap`. */
ron_status_t ron_base64_decode(ron_str_t text, uint8_t *out, size_t cap,
    size_t *len);
ron_status_t ron_base64url_decode(ron_str_t text, uint8_t *out, size_t cap,
    size_t *len);


/* Lower-case hexadecimal; upper case is refused. */
size_t ron_hex_encode(ron_str_t in, char *out);

/* Exactly `len` bytes from exactly 2 * len characters. */
ron_status_t ron_hex_decode(ron_str_t text, uint8_t *out, size_t len);


/* 128 bits in Crockford's base 32, upper case, most significant first. */

#define RON_CROCKFORD_LEN  26

size_t ron_crockford_encode(ron_u128_t v, char out[RON_CROCKFORD_LEN]);
ron_status_t ron_crockford_decode(ron_str_t text, ron_u128_t *v);


/* 48 bits of milliseconds, then 80 bits that the caller took at random. */

#define RON_ULID_LEN         RON_CROCKFORD_LEN
#define RON_ULID_RANDOM_LEN  10

size_t ron_ulid_encode(uint64_t ms, const uint8_t random[RON_ULID_RANDOM_LEN],
    char out[RON_ULID_LEN]);
ron_status_t ron_ulid_decode(ron_str_t text, uint64_t *ms,
    uint8_t random[RON_ULID_RANDOM_LEN]);


/*
 * RFC 3339, UTC, always with milliseconds: 2026-01-02T03:04:05.678Z, for the
 * years 1970 to 9999.  There are no leap seconds.
 */

#define RON_TIME_LEN     24
#define RON_TIME_MAX_MS  UINT64_C(253402300799999)

/* Writes a NUL too.  RON_ERANGE, and an empty text, after the year 9999. */
ron_status_t ron_time_print(uint64_t ms, char out[RON_TIME_LEN + 1]);
ron_status_t ron_time_parse(ron_str_t text, uint64_t *ms);


/*
 * RFC 3629: no overlong form, no surrogate, nothing over U+10FFFF.  On
 * RON_EINVAL *off (which may be NULL) is where the first bad sequence begins.
 */
ron_status_t ron_utf8_check(ron_str_t s, size_t *off);


#endif /* RON_CODEC_H */
