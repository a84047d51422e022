/* Atoms: SHA-256 (FIPS 180-4) in counter mode. Plain C; a message of one block, which is nearly every token, costs one
 * compression of about 0.2 us. */
#include "kernels.h"

#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static const uint32_t START[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static inline uint32_t turn_right(uint32_t x, int bits) { return x >> bits | x << (32 - bits); }

static void compress(uint32_t state[8], const unsigned char block[64]) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = turn_right(w[i - 15], 7) ^ turn_right(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = turn_right(w[i - 2], 17) ^ turn_right(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i];
        uint32_t s0 = turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

/* Write the decimal digits of `number` and return how many. */
static size_t decimal(size_t number, unsigned char digits[20]) {
    unsigned char reversed[20];
    size_t count = 0;
    do reversed[count++] = (unsigned char)('0' + number % 10);
    while (number /= 10);
    for (size_t i = 0; i < count; i++) digits[i] = reversed[count - 1 - i];
    return count;
}

void hm_atom(const unsigned char *token, size_t size, size_t d, uint16_t *out) {
    uint32_t prefix[8]; /* the state after the whole blocks of the token, the same for every counter */
    size_t whole = size / 64 * 64;
    memcpy(prefix, START, sizeof prefix);
    for (size_t at = 0; at < whole; at += 64) compress(prefix, token + at);
    for (size_t counter = 0; 16 * counter < d; counter++) {
        unsigned char tail[192], digest[32]; /* rest of the token, ":", digits, padding, length: three blocks at most */
        uint32_t state[8];
        size_t used = size - whole;
        memset(tail, 0, sizeof tail);
        if (used) memcpy(tail, token + whole, used);
        tail[used++] = ':';
        used += decimal(counter, tail + used);
        uint64_t bits = 8 * (uint64_t)(whole + used);
        tail[used] = 0x80;
        size_t end = (used + 9 + 63) / 64 * 64;
        for (int i = 0; i < 8; i++) tail[end - 1 - i] = (unsigned char)(bits >> (8 * i));
        memcpy(state, prefix, sizeof state);
        for (size_t at = 0; at < end; at += 64) compress(state, tail + at);
        for (int i = 0; i < 8; i++) {
            digest[4 * i] = (unsigned char)(state[i] >> 24);
            digest[4 * i + 1] = (unsigned char)(state[i] >> 16);
            digest[4 * i + 2] = (unsigned char)(state[i] >> 8);
            digest[4 * i + 3] = (unsigned char)state[i];
        }
        size_t rest = d - 16 * counter;
        memcpy(out + 16 * counter, digest, 2 * (rest < 16 ? rest : 16)); /* little-endian, as kernels.h requires */
    }
}
