
/*
 * Amounts: unsigned 128-bit integers in minor units.
 *
 * There is no sign and no fraction; what does not fit is RON_ERANGE and never
 * a wrapped number.  On the wire an amount is its canonical decimal text, so
 * that equal amounts are equal bytes.
 */

#ifndef RON_AMOUNT_H
#define RON_AMOUNT_H


#include "ron.h"


#define RON_AMOUNT_MAX  40      /* 39 digits of 2^128 - 1, and a NUL */


/* All results are zero on failure and may be the same object as an input. */
ron_status_t ron_amount_add(ron_u128_t a, ron_u128_t b, ron_u128_t *sum);
ron_status_t ron_amount_sub(ron_u128_t a, ron_u128_t b, ron_u128_t *diff);
ron_status_t ron_amount_mul(ron_u128_t a, ron_u128_t b, ron_u128_t *product);

/* a + b > limit, also where the sum has no room in 128 bits. */
bool ron_amount_over(ron_u128_t a, ron_u128_t b, ron_u128_t limit);

/*
 * quot = floor(a * b / d) over the full 256-bit product, rem = a * b mod d.
 * rem may be NULL.  RON_EINVAL when d is 0, RON_ERANGE when the quotient does
 * not fit.
 */
ron_status_t ron_amount_muldiv(ron_u128_t a, ron_u128_t b, ron_u128_t d,
    ron_u128_t *quot, ron_u128_t *rem);

/*
 * Digits only, no leading zero but in "0" itself.  RON_EINVAL for any other
 * text, RON_ERANGE for a well-formed number of 2^128 and over.
 */
ron_status_t ron_amount_parse(ron_str_t s, ron_u128_t *v);

/* Writes the digits and a NUL; returns the number of digits. */
size_t ron_amount_print(ron_u128_t v, char buf[RON_AMOUNT_MAX]);


#endif /* RON_AMOUNT_H */
