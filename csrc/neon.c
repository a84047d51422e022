/* NEON, which every 64-bit ARM has. */
#ifdef HM_HAVE_NEON
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline float32x4_t four_at(const unsigned char *row) { return vreinterpretq_f32_u8(vld1q_u8(row)); }

static float dot_row(const unsigned char *row, const float *query, size_t d) {
    float32x4_t a = vdupq_n_f32(0), b = a, c = a, e = a;
    size_t j = 0;
    for (; j + 16 <= d; j += 16) {
        a = vfmaq_f32(a, four_at(row + 4 * j), vld1q_f32(query + j));
        b = vfmaq_f32(b, four_at(row + 4 * j + 16), vld1q_f32(query + j + 4));
        c = vfmaq_f32(c, four_at(row + 4 * j + 32), vld1q_f32(query + j + 8));
        e = vfmaq_f32(e, four_at(row + 4 * j + 48), vld1q_f32(query + j + 12));
    }
    float sum = vaddvq_f32(vaddq_f32(vaddq_f32(a, b), vaddq_f32(c, e)));
    for (; j < d; j++) {
        float value;
        memcpy(&value, row + 4 * j, sizeof value);
        sum += value * query[j];
    }
    return sum;
}

/* Sixteen int8 as four vectors of float. */
static inline void sixteen(const int8_t *row, float32x4_t out[4]) {
    int8x16_t bytes = vld1q_s8(row);
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    out[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    out[1] = vcvtq_f32_s32(vmovl_high_s16(low));
    out[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    out[3] = vcvtq_f32_s32(vmovl_high_s16(high));
}

static float pair_dot(const int8_t *row, const float *key, size_t size) {
    float32x4_t sums[4], values[4];
    size_t j = 0;
    for (size_t i = 0; i < 4; i++) sums[i] = vdupq_n_f32(0);
    for (; j + 16 <= size; j += 16) {
        sixteen(row + j, values);
        for (size_t i = 0; i < 4; i++) sums[i] = vfmaq_f32(sums[i], values[i], vld1q_f32(key + j + 4 * i));
    }
    float sum = vaddvq_f32(vaddq_f32(vaddq_f32(sums[0], sums[1]), vaddq_f32(sums[2], sums[3])));
    for (; j < size; j++) sum += (float)row[j] * key[j];
    return sum;
}

/* The row is converted once for all four keys. */
static void pair_dot4(const int8_t *row, const float *const keys[4], size_t size, float out[4]) {
    float32x4_t low[4], high[4], values[4];
    size_t j = 0;
    for (size_t a = 0; a < 4; a++) low[a] = high[a] = vdupq_n_f32(0);
    for (; j + 16 <= size; j += 16) {
        sixteen(row + j, values);
        for (size_t a = 0; a < 4; a++) {
            low[a] = vfmaq_f32(low[a], values[0], vld1q_f32(keys[a] + j));
            high[a] = vfmaq_f32(high[a], values[1], vld1q_f32(keys[a] + j + 4));
            low[a] = vfmaq_f32(low[a], values[2], vld1q_f32(keys[a] + j + 8));
            high[a] = vfmaq_f32(high[a], values[3], vld1q_f32(keys[a] + j + 12));
        }
    }
    for (size_t a = 0; a < 4; a++) {
        out[a] = vaddvq_f32(vaddq_f32(low[a], high[a]));
        for (size_t i = j; i < size; i++) out[a] += (float)row[i] * keys[a][i];
    }
}

#define HM_TABLE hm_neon
#define HM_ISA "neon"
#include "generic.h"

#endif
