/* Plain C without intrinsics: runs everywhere, and is vectorised with what every CPU of the architecture has. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sixteen sums side by side, since a compiler may not reorder one. */
static float total(const float sums[16]) {
    float sum = 0;
    for (size_t j = 0; j < 8; j++) sum += sums[j] + sums[j + 8];
    return sum;
}

static float dot_row(const unsigned char *row, const float *query, size_t d) {
    float sums[16] = {0}, part[16];
    size_t j = 0;
    for (; j + 16 <= d; j += 16) {
        memcpy(part, row + 4 * j, sizeof part);
        for (size_t i = 0; i < 16; i++) sums[i] += part[i] * query[j + i];
    }
    memcpy(part, row + 4 * j, 4 * (d - j));
    for (size_t i = 0; j + i < d; i++) sums[i] += part[i] * query[j + i];
    return total(sums);
}

/* 256 products of at most 2^22 fit an int32. */
static int64_t pair_dot(const int8_t *row, const int8_t *ahead, const int16_t *key, size_t size) {
    (void)ahead; /* left to the hardware */
    int64_t sum = 0;
    for (size_t j = 0; j < size; j += 256) {
        size_t stop = size - j < 256 ? size : j + 256;
        int32_t part = 0;
        for (size_t i = j; i < stop; i++) part += (int32_t)row[i] * key[i];
        sum += part;
    }
    return sum;
}

static void pair_dot4(const int8_t *row, const int8_t *ahead, const int16_t *const keys[4], size_t size, int64_t out[4]) {
    for (size_t a = 0; a < 4; a++) out[a] = pair_dot(row, ahead, keys[a], size); /* the row is in L1 by the second */
}

#define HM_TABLE hm_scalar
#define HM_ISA "scalar"
#define HM_ATOM hm_atom_plain
#include "generic.h"
