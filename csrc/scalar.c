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

static float pair_dot(const int8_t *row, const float *key, size_t size) {
    float sums[16] = {0};
    size_t j = 0;
    for (; j + 16 <= size; j += 16)
        for (size_t i = 0; i < 16; i++) sums[i] += (float)row[j + i] * key[j + i];
    for (size_t i = 0; j + i < size; i++) sums[i] += (float)row[j + i] * key[j + i];
    return total(sums);
}

static void pair_dot4(const int8_t *row, const float *const keys[4], size_t size, float out[4]) {
    for (size_t a = 0; a < 4; a++) out[a] = pair_dot(row, keys[a], size); /* the row is in L1 by the second */
}

#define HM_TABLE hm_scalar
#define HM_ISA "scalar"
#include "generic.h"
