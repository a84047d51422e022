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

static inline __m256 eight(const int8_t *row) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)row)));
}

static float pair_dot(const int8_t *row, const float *key, size_t size) {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, e = a;
    size_t j = 0;
    for (; j + 32 <= size; j += 32) {
        a = _mm256_fmadd_ps(eight(row + j), _mm256_loadu_ps(key + j), a);
        b = _mm256_fmadd_ps(eight(row + j + 8), _mm256_loadu_ps(key + j + 8), b);
        c = _mm256_fmadd_ps(eight(row + j + 16), _mm256_loadu_ps(key + j + 16), c);
        e = _mm256_fmadd_ps(eight(row + j + 24), _mm256_loadu_ps(key + j + 24), e);
    }
    float sum = total(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, e)));
    for (; j < size; j++) sum += (float)row[j] * key[j];
    return sum;
}

/* The row is converted once for all four keys. */
static void pair_dot4(const int8_t *row, const float *const keys[4], size_t size, float out[4]) {
    __m256 low[4], high[4];
    size_t j = 0;
    for (size_t a = 0; a < 4; a++) low[a] = high[a] = _mm256_setzero_ps();
    for (; j + 16 <= size; j += 16) {
        __m256 first = eight(row + j), second = eight(row + j + 8);
        for (size_t a = 0; a < 4; a++) {
            low[a] = _mm256_fmadd_ps(first, _mm256_loadu_ps(keys[a] + j), low[a]);
            high[a] = _mm256_fmadd_ps(second, _mm256_loadu_ps(keys[a] + j + 8), high[a]);
        }
    }
    for (size_t a = 0; a < 4; a++) {
        out[a] = total(_mm256_add_ps(low[a], high[a]));
        for (size_t i = j; i < size; i++) out[a] += (float)row[i] * keys[a][i];
    }
}

#define HM_TABLE hm_avx2
#define HM_ISA "avx2"
#include "generic.h"

#endif
