/* The contract of the compiled kernels. No Python in here; module.c has the glue.
 *
 * Common to all:
 *   - Inputs first, `out` last. Nothing is allocated, kept or locked; any number of threads may call at once, as long as
 *     nobody writes to the inputs meanwhile. The floating-point environment stays as it is (round to nearest is assumed).
 *   - A size of 0 is valid everywhere unless said otherwise; no pointer is then read.
 *   - Buffers are aligned to their element and contiguous (blobs: to nothing), and do not overlap with `out`.
 *   - Rows and CSR offsets have been checked by the caller.
 *   - u is 2^-24, the unit roundoff of float.
 *
 * Letters: n rows, d width, m hashes of the query, k vectors or results, e keys, r chosen rows.
 * `rows` (r) chooses rows; NULL means row 0 to r - 1.
 * CSR: the hashes of row i are hashes[offsets[i]] to hashes[offsets[i + 1] - 1], sorted and distinct.
 * A turn is 1/65536 of a circle.
 */
#ifndef HM_KERNELS_H
#define HM_KERNELS_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

/* Rounding by adding a large constant needs plain double arithmetic (not x87), and BLOBs and digests are little-endian.
 * Elsewhere the build fails and a wheel without this module is made, whose NumPy reference is right everywhere. */
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "these kernels need doubles without excess precision"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these kernels need a little-endian machine"
#endif

struct hm_kernels {
    const char *isa; /* "scalar", "avx2" or "neon" */

    /* out[i] = sum over j of rows[i][j] * query[j]        rows (n, d), query (d), out (n); d = 0 gives 0
     * Summed in float, in another order than written: |error| <= (d / 8 + 8) u sum|rows[i][j] query[j]|, below 4e-6 for unit
     * rows and d = 384 (1.3e-7 measured). NaN and inf as IEEE arithmetic has it. */
    void (*dot)(const float *rows, const float *query, size_t n, size_t d, float *out);

    /* As dot, with row i at blobs[i], at any address; NULL gives NaN.        blobs (n), query (d), out (n) */
    void (*dot_blobs)(const unsigned char *const *blobs, const float *query, size_t n, size_t d, float *out);

    /* out = indexes of the k largest scores, descending, ties by lower index, NaN last.       scores (n), out (k), k <= n */
    void (*top_k)(const float *scores, size_t n, size_t k, int64_t *out);

    /* out[i] = |query and row| / |query or row|, correctly rounded; 0 when both are empty.
     * query (m) sorted and distinct, out (r) */
    void (*jaccard)(const uint32_t *query, size_t m, const int64_t *offsets, const uint32_t *hashes, const int64_t *rows,
                    size_t r, float *out);

    /* out[i] = sum over the hashes in query and row of weight * tf / (tf + norms[row]), summed in double.
     * query (m) sorted and distinct, weights (m), counts as hashes (the tf), norms (n) not negative, out (r) */
    void (*overlap)(const uint32_t *query, const float *weights, size_t m, const int64_t *offsets, const uint32_t *hashes,
                    const uint8_t *counts, const float *norms, const int64_t *rows, size_t r, float *out);

    /* Turns of a token: SHA-256 of "<token>:<i>", i = 0, 1, ... in decimal, 16 little-endian uint16 each.
     * token (size), out (d) */
    void (*atom)(const unsigned char *token, size_t size, size_t d, uint16_t *out);

    /* out[j] = angle of sum over i of e^(i 2 pi turns[i][j] / 65536), in [0, 2 pi)        turns (k, d), k >= 1, out (d)
     * |error| <= 1e-14 k / |sum| radians; a sum of exactly 0 gives 0. */
    void (*bundle_turns)(const uint16_t *turns, size_t k, size_t d, double *out);

    /* As bundle_turns, of phases in radians; NaN where a phase is not finite.        phases (k, d), k >= 1, out (d) */
    void (*bundle)(const double *phases, size_t k, size_t d, double *out);

    /* out[i][j] = round(127 cos x), out[i][d + j] = round(127 sin x), x = phases[i][j] taken to the nearest turn.
     * phases (n, d), out (n, 2 d). Exact: the same values on every machine. A row with a phase that is not finite or
     * beyond 1e11 is all 0. */
    void (*pairs)(const double *phases, size_t n, size_t d, int8_t *out);

    /* out[a][i] = scales[a] * sum over j of pairs[row i][j] keys[a][j]
     * pairs (n, 2 d), keys (e, 2 d), scales (e), out (e, r). The sums are exact: the same values on every machine. */
    void (*hrr_similarity)(const int8_t *pairs, const int16_t *keys, const float *scales, const int64_t *rows, size_t e,
                           size_t r, size_t d, float *out);
};

/* The i-th best table that this machine can run, NULL behind the last. The last is always "scalar". */
const struct hm_kernels *hm_table(size_t i);

/* Tables of single instruction sets; only hm_table may hand them out, since it asks the CPU first. */
extern const struct hm_kernels hm_scalar, hm_avx2, hm_neon;

/* The two ways to make an atom: in plain C, and by the CPU's own instructions where it has them. */
void hm_atom_plain(const unsigned char *token, size_t size, size_t d, uint16_t *out);
void hm_atom_by_cpu(const unsigned char *token, size_t size, size_t d, uint16_t *out);

/* Hashes of the terms of each text, as CSR: for each row sorted, distinct, with their counts (255 when more).
 * `joined` (size) is UTF-8: texts separated by one newline, terms by single spaces (an empty term is none); n >= 1 texts.
 * Hash: FNV-1a (32 bits) of the term's bytes, then MurmurHash3's finalizer.
 * offsets (n + 1), hashes and counts (`most`, which must be at least the number of terms, repeats counted).
 * Returns 0; -1 when the number of texts is not n or `most` is too small (the outputs are then unspecified). */
int hm_term_hashes(const unsigned char *joined, size_t size, size_t n, size_t most, int64_t *offsets, uint32_t *hashes,
                   uint8_t *counts);

/* As hm_term_hashes, of each three successive code points of a term. */
int hm_trigram_hashes(const unsigned char *joined, size_t size, size_t n, size_t most, int64_t *offsets, uint32_t *hashes,
                      uint8_t *counts);

#endif
