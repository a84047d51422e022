/* Atoms: SHA-256 (FIPS 180-4) in plain C, or by the CPU's own instructions. An atom of width 1024 is 64 digests of short texts. */
#include "kernels.h"

#include <string.h>

#ifdef HM_HAVE_AVX2
#include <cpuid.h>
#include <immintrin.h>
#endif

typedef void compressor(uint32_t state[8], const unsigned char *block);

struct sha256 {
    compressor *compress;
    uint32_t state[8];
    unsigned char block[64];
    uint64_t size; /* bytes taken so far */
};

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotate(uint32_t x, int bits) { return x >> bits | x << (32 - bits); }

static void compress(uint32_t state[8], const unsigned char *block) {
    uint32_t w[64], s[8];
    for (size_t i = 0; i < 16; i++, block += 4)
        w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t low = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t high = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    memcpy(s, state, sizeof s);
    for (size_t i = 0; i < 64; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t a = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + choice + K[i] + w[i];
        uint32_t b = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;
        s[7] = s[6], s[6] = s[5], s[5] = s[4], s[4] = s[3] + a;
        s[3] = s[2], s[2] = s[1], s[1] = s[0], s[0] = a + b;
    }
    for (size_t i = 0; i < 8; i++) state[i] += s[i];
}

#ifdef HM_HAVE_AVX2
/* Four rounds at a time; w has the next 16 words of the message schedule. */
__attribute__((target("sha,sse4.1"))) static void compress_by_cpu(uint32_t state[8], const unsigned char *block) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i w[4], *halves = (__m128i *)(void *)state;
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128(halves), 0xb1), hgfe = _mm_shuffle_epi32(_mm_loadu_si128(halves + 1), 0x1b);
    __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, dcba, 0xf0);
    const __m128i abef_before = abef, cdgh_before = cdgh;
    for (size_t i = 0; i < 4; i++)
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)block + i), big_endian);
    for (size_t i = 0; i < 16; i++) {
        __m128i words = _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * i)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0e));
        if (i < 12) {
            __m128i last = w[(i + 3) % 4], next = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
            next = _mm_add_epi32(next, _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
            w[i % 4] = _mm_sha256msg2_epu32(next, last);
        }
    }
    abef = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
    cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
    _mm_storeu_si128(halves, _mm_blend_epi16(abef, cdgh, 0xf0));
    _mm_storeu_si128(halves + 1, _mm_alignr_epi8(cdgh, abef, 8));
}

static int has_sha(void) {
    unsigned int a, b, c, d;
    return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}
#endif

static void take(struct sha256 *hash, const unsigned char *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        hash->block[hash->size++ % 64] = data[i];
        if (hash->size % 64 == 0) hash->compress(hash->state, hash->block);
    }
}

static void finish(struct sha256 *hash) {
    uint64_t bits = hash->size * 8;
    size_t used = hash->size % 64;
    hash->block[used++] = 0x80;
    if (used > 56) {
        memset(hash->block + used, 0, 64 - used);
        hash->compress(hash->state, hash->block);
        used = 0;
    }
    memset(hash->block + used, 0, 56 - used);
    for (size_t i = 0; i < 8; i++) hash->block[56 + i] = (unsigned char)(bits >> (56 - 8 * i));
    hash->compress(hash->state, hash->block);
}

static void atom(compressor *compress, const unsigned char *token, size_t size, size_t d, uint16_t *out) {
    struct sha256 start = {
        compress,
        {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, {0}, 0,
    };
    take(&start, token, size);
    take(&start, (const unsigned char *)":", 1);
    for (size_t i = 0; 16 * i < d; i++) {
        struct sha256 hash = start; /* a long token is read once, not for each digest */
        unsigned char digits[20];
        size_t first = sizeof digits, rest = i;
        do digits[--first] = (unsigned char)('0' + rest % 10);
        while (rest /= 10);
        take(&hash, digits + first, sizeof digits - first);
        finish(&hash);
        for (size_t j = 0; j < 16 && 16 * i + j < d; j++) { /* a word of the digest is big-endian, a turn little-endian */
            uint32_t half = j % 2 ? hash.state[j / 2] & 0xffff : hash.state[j / 2] >> 16;
            out[16 * i + j] = (uint16_t)(half >> 8 | half << 8);
        }
    }
}

void hm_atom_plain(const unsigned char *token, size_t size, size_t d, uint16_t *out) { atom(compress, token, size, d, out); }

void hm_atom_by_cpu(const unsigned char *token, size_t size, size_t d, uint16_t *out) {
#ifdef HM_HAVE_AVX2
    if (has_sha()) {
        atom(compress_by_cpu, token, size, d, out);
        return;
    }
#endif
    hm_atom_plain(token, size, d, out);
}
