/* Terms and trigrams of texts as sorted hashes with counts. */
#include "kernels.h"

static const uint32_t EMPTY = 0x811c9dc5; /* FNV-1a */

static inline uint32_t take(uint32_t hash, unsigned char byte) { return (hash ^ byte) * 0x01000193; }

/* The finalizer of MurmurHash3, since FNV's high bits are poor and the kernels look at them first. */
static inline uint32_t finish(uint32_t hash) {
    hash = (hash ^ hash >> 16) * 0x85ebca6b;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35;
    return hash ^ hash >> 16;
}

/* Shell sort with the gaps of Ciura: needs no memory, and no input makes it slow. */
static void sort(uint32_t *values, size_t n) {
    static const size_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};
    size_t gap = n, next = 0;
    while (gap > 1) {
        gap = gap > 3937 ? gap * 4 / 9 : gaps[next++];
        for (size_t i = gap; i < n; i++) {
            uint32_t value = values[i];
            size_t hole = i;
            for (; hole >= gap && values[hole - gap] > value; hole -= gap) values[hole] = values[hole - gap];
            values[hole] = value;
        }
    }
}

struct csr {
    int64_t *offsets;
    uint32_t *hashes;
    uint8_t *counts;
    size_t n, most; /* their sizes: rows, entries */
    size_t row, start, end;
};

static inline int add(struct csr *csr, uint32_t hash) {
    if (csr->end == csr->most) return -1;
    csr->hashes[csr->end++] = finish(hash);
    return 0;
}

/* Sort the entries of the current row, merge equal ones, go to the next row. */
static int end_row(struct csr *csr) {
    uint32_t *hashes = csr->hashes + csr->start;
    uint8_t *counts = csr->counts + csr->start;
    size_t size = csr->end - csr->start, distinct = 0;
    if (csr->row == csr->n) return -1;
    sort(hashes, size);
    for (size_t i = 0; i < size; i++) {
        if (i && hashes[i] == hashes[distinct - 1]) {
            if (counts[distinct - 1] < 255) counts[distinct - 1]++;
        } else {
            hashes[distinct] = hashes[i];
            counts[distinct++] = 1;
        }
    }
    csr->start = csr->end = csr->start + distinct;
    csr->offsets[++csr->row] = (int64_t)csr->end;
    return 0;
}

int hm_term_hashes(const unsigned char *joined, size_t size, size_t n, size_t most, int64_t *offsets, uint32_t *hashes,
                   uint8_t *counts) {
    struct csr csr = {offsets, hashes, counts, n, most, 0, 0, 0};
    uint32_t hash = EMPTY;
    size_t length = 0;
    offsets[0] = 0;
    for (size_t i = 0; i <= size; i++) {
        unsigned char byte = i < size ? joined[i] : '\n';
        if (byte != ' ' && byte != '\n') {
            hash = take(hash, byte);
            length++;
            continue;
        }
        if (length && add(&csr, hash) < 0) return -1;
        hash = EMPTY;
        length = 0;
        if (byte == '\n' && end_row(&csr) < 0) return -1;
    }
    return csr.row == n ? 0 : -1;
}

int hm_trigram_hashes(const unsigned char *joined, size_t size, size_t n, size_t most, int64_t *offsets, uint32_t *hashes,
                      uint8_t *counts) {
    struct csr csr = {offsets, hashes, counts, n, most, 0, 0, 0};
    size_t starts[3] = {0}, length = 0; /* of the last three code points; code points of the term so far */
    offsets[0] = 0;
    for (size_t i = 0; i <= size; i++) {
        unsigned char byte = i < size ? joined[i] : '\n';
        if ((byte & 0xc0) == 0x80) continue; /* inside a code point */
        if (length >= 3) {
            uint32_t hash = EMPTY;
            for (size_t j = starts[0]; j < i; j++) hash = take(hash, joined[j]);
            if (add(&csr, hash) < 0) return -1;
        }
        if (byte == ' ' || byte == '\n') {
            length = 0;
            if (byte == '\n' && end_row(&csr) < 0) return -1;
            continue;
        }
        starts[0] = starts[1];
        starts[1] = starts[2];
        starts[2] = i;
        length++;
    }
    return csr.row == n ? 0 : -1;
}
