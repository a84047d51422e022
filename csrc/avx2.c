/* AVX2 and FMA, compiled with -mavx2 -mfma; nothing in here may run before dispatch.c has asked the CPU. */
#ifdef HM_HAVE_AVX2
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline float total(__m256 sum) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Ones in the first `count` of 8 lanes: the lanes of the tail of a row. */
static inline __m256i first_lanes(size_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Four sums, since a fused multiply-add takes 4 cycles and two start in each. */
static float dot_row(const unsigned char *row, const float *query, size_t d) {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, e = a;
    size_t j = 0;
    for (; j + 32 <= d; j += 32) {
        const float *at = (const float *)(const void *)(row + 4 * j);
        a = _mm256_fmadd_ps(_mm256_loadu_ps(at), _mm256_loadu_ps(query + j), a);
        b = _mm256_fmadd_ps(_mm256_loadu_ps(at + 8), _mm256_loadu_ps(query + j + 8), b);
        c = _mm256_fmadd_ps(_mm256_loadu_ps(at + 16), _mm256_loadu_ps(query + j + 16), c);
        e = _mm256_fmadd_ps(_mm256_loadu_ps(at + 24), _mm256_loadu_ps(query + j + 24), e);
    }
    for (; j < d; j += 8) {
        __m256i lanes = first_lanes(d - j < 8 ? d - j : 8);
        const float *at = (const float *)(const void *)(row + 4 * j);
        a = _mm256_fmadd_ps(_mm256_maskload_ps(at, lanes), _mm256_maskload_ps(query + j, lanes), a);
    }
    return total(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, e)));
}

/* Sixteen products of int8 and int16 as eight sums of two in int32: at most 2^23 each. */
static inline __m256i sixteen(const int8_t *row, const int16_t *key) {
    __m256i values = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)row));
    return _mm256_madd_epi16(values, _mm256_loadu_si256((const __m256i *)(const void *)key));
}

static inline int64_t total_int(__m256i sums) {
    __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(sums));
    __m256i wide = _mm256_add_epi64(low, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(sums, 1)));
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    return _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
}

enum { FOLD = 2048 }; /* values added up in int32, 128 times 2^23 in a lane, before they are taken to int64 */

static int64_t pair_dot(const int8_t *row, const int8_t *ahead, const int16_t *key, size_t size) {
    int64_t sum = 0;
    size_t j = 0;
    while (j + 32 <= size) {
        size_t stop = size - j < FOLD ? size : j + FOLD;
        __m256i a = _mm256_setzero_si256(), b = a;
        for (; j + 64 <= stop; j += 64) {
            _mm_prefetch((const char *)ahead + j, _MM_HINT_T0);
            a = _mm256_add_epi32(a, sixteen(row + j, key + j));
            b = _mm256_add_epi32(b, sixteen(row + j + 16, key + j + 16));
            a = _mm256_add_epi32(a, sixteen(row + j + 32, key + j + 32));
            b = _mm256_add_epi32(b, sixteen(row + j + 48, key + j + 48));
        }
        for (; j + 32 <= stop; j += 32) {
            a = _mm256_add_epi32(a, sixteen(row + j, key + j));
            b = _mm256_add_epi32(b, sixteen(row + j + 16, key + j + 16));
        }
        sum += total_int(a) + total_int(b);
    }
    for (; j < size; j++) sum += (int32_t)row[j] * key[j];
    return sum;
}

/* The row is widened once for all four keys. */
static void pair_dot4(const int8_t *row, const int8_t *ahead, const int16_t *const keys[4], size_t size, int64_t out[4]) {
    size_t j = 0;
    for (size_t a = 0; a < 4; a++) out[a] = 0;
    while (j + 16 <= size) {
        size_t stop = size - j < FOLD ? size : j + FOLD;
        __m256i sums[4];
        for (size_t a = 0; a < 4; a++) sums[a] = _mm256_setzero_si256();
        for (; j + 16 <= stop; j += 16) {
            if (j % 64 == 0) _mm_prefetch((const char *)ahead + j, _MM_HINT_T0);
            __m256i values = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(row + j)));
            for (size_t a = 0; a < 4; a++) {
                __m256i key = _mm256_loadu_si256((const __m256i *)(const void *)(keys[a] + j));
                sums[a] = _mm256_add_epi32(sums[a], _mm256_madd_epi16(values, key));
            }
        }
        for (size_t a = 0; a < 4; a++) out[a] += total_int(sums[a]);
    }
    for (; j < size; j++)
        for (size_t a = 0; a < 4; a++) out[a] += (int32_t)row[j] * keys[a][j];
}

#define HM_TABLE hm_avx2
#define HM_ISA "avx2"
#define HM_ATOM hm_atom_by_cpu
#include "generic.h"

#endif
