/* Every kernel in plain C, once. Each instruction set's file includes this after it has defined
 *
 *     HM_TABLE, HM_ISA, HM_ATOM                                  the names of its table, and which hm_atom is in it
 *     static float dot_row(const unsigned char *row, const float *query, size_t d)
 *         the dot product with d floats at any address
 *     static int64_t pair_dot(const int8_t *row, const int8_t *ahead, const int16_t *key, size_t size)
 *     static void pair_dot4(const int8_t *row, const int8_t *ahead, const int16_t *const keys[4], size_t size, int64_t out[4])
 *         the exact dot products of one row with one and with four keys; `ahead` is a row that is needed soon
 *
 * since those two sums are what a compiler does not vectorise, or not well, by itself. The other loops have no
 * branches, work on blocks that stay in L1, and are vectorised with the flags of the including file. No contraction to
 * fused multiply-add is allowed (CMakeLists.txt), so that they give the same values everywhere.
 */
#include "kernels.h"

#include <math.h>
#include <string.h>

#define BLOCK 256 /* columns of a bundle at a time: 4 KB of sums */

static const double TWO_PI = 6.283185307179586;
static const double TURN = 6.283185307179586 / 65536;
static const double HALF_PI = 1.5707963267948966;
static const double ROUND = 6755399441055744.0; /* 1.5 * 2^52: x + ROUND has x, rounded to even, in its low bits */

static inline size_t row_at(const int64_t *rows, size_t i) { return rows ? (size_t)rows[i] : i; }

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint32_t bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- dot, top_k ---- */

static void dot(const float *rows, const float *query, size_t n, size_t d, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = dot_row((const unsigned char *)(rows + i * d), query, d);
}

static void dot_blobs(const unsigned char *const *blobs, const float *query, size_t n, size_t d, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = blobs[i] ? dot_row(blobs[i], query, d) : (float)NAN;
}

/* Whether score i stands before score j in the result. */
static inline int before(const float *scores, int64_t i, int64_t j) {
    float a = scores[i], b = scores[j];
    if (a > b) return 1;
    if (a < b) return 0;
    if ((a != a) != (b != b)) return b != b;
    return i < j;
}

/* Let `index` sink from the root to its place in a heap of `size` whose root is the last in the order. */
static void sink(const float *scores, int64_t *heap, size_t size, int64_t index) {
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child >= size) break;
        if (child + 1 < size && before(scores, heap[child], heap[child + 1])) child++;
        if (!before(scores, index, heap[child])) break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = index;
}

static void top_k(const float *scores, size_t n, size_t k, int64_t *out) {
    if (k == 0) return;
    for (size_t i = 0; i < k; i++) { /* `out` is the heap; each new index rises from the end */
        size_t hole = i;
        while (hole && before(scores, out[(hole - 1) / 2], (int64_t)i)) {
            out[hole] = out[(hole - 1) / 2];
            hole = (hole - 1) / 2;
        }
        out[hole] = (int64_t)i;
    }
    for (size_t i = k; i < n; i += 32) {
        size_t end = n - i < 32 ? n : i + 32;
        float worst = scores[out[0]];
        int some = worst != worst;
        for (size_t j = i; j < end; j++) some |= scores[j] > worst;
        if (!some) continue; /* an equal score has a higher index, so it loses */
        for (size_t j = i; j < end; j++)
            if (before(scores, (int64_t)j, out[0])) sink(scores, out, k, (int64_t)j);
    }
    for (size_t size = k; size-- > 1;) {
        int64_t last = out[size];
        out[size] = out[0];
        sink(scores, out, size, last);
    }
}

/* ---- jaccard, overlap ---- */

/* The query's hashes for fast refusal: most hashes of a row are not in it, and for those one bit is looked at. */
struct lookup {
    const uint32_t *query;
    uint64_t bits[1024];  /* whether any hash has these upper 16 bits */
    uint32_t start[257];  /* where the hashes with each upper byte start */
};

static void fill_lookup(struct lookup *at, const uint32_t *query, size_t m) {
    size_t i = 0;
    at->query = query;
    memset(at->bits, 0, sizeof at->bits);
    for (size_t byte = 0; byte < 256; byte++) {
        at->start[byte] = (uint32_t)i;
        for (; i < m && query[i] >> 24 <= byte; i++) at->bits[query[i] >> 22] |= (uint64_t)1 << (query[i] >> 16 & 63);
    }
    at->start[256] = (uint32_t)m;
}

/* The place of a hash in the query, -1 when it is not there. */
static inline int64_t find(const struct lookup *at, uint32_t hash) {
    if (!(at->bits[hash >> 22] >> (hash >> 16 & 63) & 1)) return -1;
    size_t low = at->start[hash >> 24], high = at->start[(hash >> 24) + 1];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (at->query[middle] < hash) low = middle + 1;
        else high = middle;
    }
    return low < at->start[(hash >> 24) + 1] && at->query[low] == hash ? (int64_t)low : -1;
}

static void jaccard(const uint32_t *query, size_t m, const int64_t *offsets, const uint32_t *hashes, const int64_t *rows,
                    size_t r, float *out) {
    struct lookup at;
    fill_lookup(&at, query, m);
    for (size_t i = 0; i < r; i++) {
        size_t row = row_at(rows, i), shared = 0;
        int64_t end = offsets[row + 1];
        for (int64_t j = offsets[row]; j < end; j++) shared += find(&at, hashes[j]) >= 0;
        size_t either = m + (size_t)(end - offsets[row]) - shared;
        out[i] = either ? (float)((double)shared / (double)either) : 0.0f;
    }
}

static void overlap(const uint32_t *query, const float *weights, size_t m, const int64_t *offsets, const uint32_t *hashes,
                    const uint8_t *counts, const float *norms, const int64_t *rows, size_t r, float *out) {
    struct lookup at;
    fill_lookup(&at, query, m);
    for (size_t i = 0; i < r; i++) {
        size_t row = row_at(rows, i);
        int64_t end = offsets[row + 1];
        double sum = 0, norm = norms[row];
        for (int64_t j = offsets[row]; j < end; j++) {
            int64_t place = find(&at, hashes[j]);
            if (place >= 0) sum += weights[place] * (counts[j] / (counts[j] + norm));
        }
        out[i] = (float)sum;
    }
}

/* ---- bundle_turns, bundle ---- */

/* cos and sin of |x| <= pi / 4 by their Taylor series, |error| <= 1e-16. */
static inline double cos_small(double x2) {
    return 1 + x2 * (-1.0 / 2 + x2 * (1.0 / 24 + x2 * (-1.0 / 720 + x2 * (1.0 / 40320 + x2 * (-1.0 / 3628800 +
           x2 * (1.0 / 479001600 + x2 * (-1.0 / 87178291200.0 + x2 * (1.0 / 20922789888000.0))))))));
}

static inline double sin_small(double x, double x2) {
    return x * (1 + x2 * (-1.0 / 6 + x2 * (1.0 / 120 + x2 * (-1.0 / 5040 + x2 * (1.0 / 362880 + x2 * (-1.0 / 39916800 +
           x2 * (1.0 / 6227020800.0 + x2 * (-1.0 / 1307674368000.0))))))));
}

/* Add the phasor of quadrant * pi / 2 + x, |x| <= pi / 4. */
static inline void add_phasor(int32_t quadrant, double x, double *re, double *im) {
    double x2 = x * x, c = cos_small(x2), s = sin_small(x, x2);
    double a = quadrant & 1 ? s : c, b = quadrant & 1 ? c : s;
    *re += (quadrant + 1) & 2 ? -a : a;
    *im += quadrant & 2 ? -b : b;
}

/* The angle of (x, y) in [0, 2 pi), NaN when y is NaN, 0 at the origin; |error| <= 2e-15.
 * atan of a ratio in [0, tan(pi / 8)] by the rational approximation of Cephes, after two reflections. */
static inline double angle(double x, double y) {
    double ax = fabs(x), ay = fabs(y);
    double high = ax > ay ? ax : ay, low = ax > ay ? ay : ax;
    int beyond = low > 0.41421356237309503 * high;
    double over = beyond ? low - high : low, under = beyond ? low + high : high;
    double z = over / (under == 0 ? 1 : under), z2 = z * z;
    double p = -6.485021904942025371773E1 + z2 * (-1.228866684490136173410E2 + z2 * (-7.500855792314704667340E1 +
               z2 * (-1.615753718733365076637E1 + z2 * -8.750608600031904122785E-1)));
    double q = 1.945506571482613964425E2 + z2 * (4.853903996359136964868E2 + z2 * (4.328810604912902668951E2 +
               z2 * (1.650270098316988542046E2 + z2 * (2.485846490142306297962E1 + z2))));
    double result = (beyond ? HALF_PI / 2 : 0) + (z + z * z2 * p / q);
    result = ay > ax ? HALF_PI - result : result;
    result = x < 0 ? TWO_PI / 2 - result : result;
    result = y < 0 ? TWO_PI - result : result;
    return result >= TWO_PI ? 0 : result;
}

static void angles(const double *re, const double *im, size_t size, double *out) {
    for (size_t j = 0; j < size; j++) out[j] = angle(re[j], im[j]);
}

static void bundle_turns(const uint16_t *turns, size_t k, size_t d, double *out) {
    double re[BLOCK], im[BLOCK];
    for (size_t start = 0; start < d; start += BLOCK) {
        size_t size = d - start < BLOCK ? d - start : BLOCK;
        memset(re, 0, sizeof re);
        memset(im, 0, sizeof im);
        for (size_t i = 0; i < k; i++) {
            const uint16_t *row = turns + i * d + start;
            for (size_t j = 0; j < size; j++) {
                int32_t quadrant = (row[j] + 8192) >> 14;
                add_phasor(quadrant, (row[j] - (quadrant << 14)) * TURN, re + j, im + j);
            }
        }
        angles(re, im, size, out + start);
    }
}

static void bundle(const double *phases, size_t k, size_t d, double *out) {
    double re[BLOCK], im[BLOCK];
    for (size_t start = 0; start < d; start += BLOCK) {
        size_t size = d - start < BLOCK ? d - start : BLOCK;
        memset(re, 0, sizeof re);
        memset(im, 0, sizeof im);
        for (size_t i = 0; i < k; i++) {
            const double *row = phases + i * d + start;
            int far = 0;
            for (size_t j = 0; j < size; j++) far |= !(fabs(row[j]) <= 1e5); /* the reduction below is exact up to here */
            if (far) {
                for (size_t j = 0; j < size; j++) {
                    re[j] += cos(row[j]);
                    im[j] += sin(row[j]);
                }
                continue;
            }
            for (size_t j = 0; j < size; j++) {
                double shifted = row[j] * (1 / HALF_PI) + ROUND, count = shifted - ROUND;
                double x = row[j] - count * 1.57079632673412561417e+00; /* pi / 2 in three parts, after fdlibm */
                x -= count * 6.07710050630396597660e-11;
                x -= count * 2.02226624879595063154e-21;
                add_phasor((int32_t)(bits_of(shifted) & 3), x, re + j, im + j);
            }
        }
        angles(re, im, size, out + start);
    }
}

/* ---- pairs and what is computed from them ---- */

static void pairs(const double *phases, size_t n, size_t d, int8_t *out) {
    uint16_t turns[BLOCK];
    for (size_t i = 0; i < n; i++) {
        const double *row = phases + i * d;
        int8_t *cosines = out + 2 * i * d, *sines = cosines + d;
        int wrong = 0;
        for (size_t j = 0; j < d; j++) wrong |= !(fabs(row[j]) <= 1e11); /* 2^51 turns are 2.1e11 */
        if (wrong) {
            memset(cosines, 0, 2 * d);
            continue;
        }
        for (size_t start = 0; start < d; start += BLOCK) {
            size_t size = d - start < BLOCK ? d - start : BLOCK;
            for (size_t j = 0; j < size; j++) turns[j] = (uint16_t)bits_of(row[start + j] * (1 / TURN) + ROUND);
            for (size_t j = 0; j < size; j++) {
                int32_t quadrant = (turns[j] + 8192) >> 14;
                float x = (float)(turns[j] - (quadrant << 14)) * (float)TURN, x2 = x * x;
                float c = 1 + x2 * (-1.0f / 2 + x2 * (1.0f / 24 + x2 * (-1.0f / 720 + x2 * (1.0f / 40320))));
                float s = x * (1 + x2 * (-1.0f / 6 + x2 * (1.0f / 120 + x2 * (-1.0f / 5040 + x2 * (1.0f / 362880)))));
                float a = quadrant & 1 ? s : c, b = quadrant & 1 ? c : s;
                a = (quadrant + 1) & 2 ? -a : a;
                b = quadrant & 2 ? -b : b;
                cosines[start + j] = (int8_t)bits_of_float(127 * a + 12582912.0f); /* 1.5 * 2^23, as ROUND */
                sines[start + j] = (int8_t)bits_of_float(127 * b + 12582912.0f);
            }
        }
    }
}

enum { AHEAD = 2 }; /* rows: left alone, the hardware fetches them at half the memory's speed (measured) */

/* The sums of one row with up to 4 keys from `first` on; beyond the last key, the last one again. */
static inline void some_sums(const int8_t *row, const int8_t *ahead, const int16_t *keys, size_t first, size_t e, size_t size,
                             int64_t sums[4]) {
    if (e - first == 1) {
        sums[0] = pair_dot(row, ahead, keys + first * size, size);
        return;
    }
    const int16_t *chosen[4];
    for (size_t a = 0; a < 4; a++) chosen[a] = keys + (first + a < e ? first + a : e - 1) * size;
    pair_dot4(row, ahead, chosen, size, sums);
}

static void hrr_similarity(const int8_t *pairs, const int16_t *keys, const float *scales, const int64_t *rows, size_t e,
                           size_t r, size_t d, float *out) {
    int64_t sums[4];
    for (size_t i = 0; i < r; i++) {
        const int8_t *row = pairs + row_at(rows, i) * 2 * d;
        const int8_t *ahead = pairs + row_at(rows, i + AHEAD < r ? i + AHEAD : r - 1) * 2 * d;
        for (size_t first = 0; first < e; first += 4) {
            some_sums(row, ahead, keys, first, e, 2 * d, sums);
            for (size_t a = first; a < e && a < first + 4; a++) out[a * r + i] = (float)sums[a - first] * scales[a];
        }
    }
}

const struct hm_kernels HM_TABLE = {
    HM_ISA, dot, dot_blobs, top_k, jaccard, overlap, HM_ATOM, bundle_turns, bundle, pairs, hrr_similarity,
};
