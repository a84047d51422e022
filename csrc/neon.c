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

enum { FOLD = 2048 }; /* values added up in int32, 128 times 2^22 in a lane, before they are taken to int64 */

static int64_t pair_dot(const int8_t *row, const int8_t *ahead, const int16_t *key, size_t size) {
    (void)ahead; /* left to the hardware */
    int64_t sum = 0;
    size_t j = 0;
    while (j + 16 <= size) {
        size_t stop = size - j < FOLD ? size : j + FOLD;
        int32x4_t a = vdupq_n_s32(0), b = a, c = a, e = a;
        for (; j + 16 <= stop; j += 16) {
            int8x16_t bytes = vld1q_s8(row + j);
            int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
            int16x8_t first = vld1q_s16(key + j), second = vld1q_s16(key + j + 8);
            a = vmlal_s16(a, vget_low_s16(low), vget_low_s16(first));
            b = vmlal_high_s16(b, low, first);
            c = vmlal_s16(c, vget_low_s16(high), vget_low_s16(second));
            e = vmlal_high_s16(e, high, second);
        }
        sum += vaddlvq_s32(a) + vaddlvq_s32(b) + vaddlvq_s32(c) + vaddlvq_s32(e);
    }
    for (; j < size; j++) sum += (int32_t)row[j] * key[j];
    return sum;
}

static void pair_dot4(const int8_t *row, const int8_t *ahead, const int16_t *const keys[4], size_t size, int64_t out[4]) {
    for (size_t a = 0; a < 4; a++) out[a] = pair_dot(row, ahead, keys[a], size); /* the row is in L1 by the second */
}

#define HM_TABLE hm_neon
#define HM_ISA "neon"
#define HM_ATOM hm_atom_plain
#include "generic.h"

#endif
