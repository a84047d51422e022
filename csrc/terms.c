/* Terms and their trigrams as sorted 32-bit hashes with counts. */
#include "kernels.h"

static uint32_t hash_bytes(const unsigned char *bytes, size_t size) {
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 16777619u;
    h = (h ^ h >> 16) * 0x85ebca6bu; /* MurmurHash3's finalizer: FNV alone leaves the upper bits of short terms alike */
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

/* Heap sort: in place and n log n whatever the input. */
static void sift(uint32_t *heap, size_t size, size_t hole, uint32_t value) {
    for (size_t child; (child = 2 * hole + 1) < size; hole = child) {
        if (child + 1 < size && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= value) break;
        heap[hole] = heap[child];
    }
    heap[hole] = value;
}

static void sort(uint32_t *values, size_t size) {
    if (size <= 64) { /* most facts: insertion sort is faster */
        for (size_t i = 1; i < size; i++) {
            uint32_t value = values[i];
            size_t j = i;
            for (; j && values[j - 1] > value; j--) values[j] = values[j - 1];
            values[j] = value;
        }
        return;
    }
    for (size_t i = size / 2; i--;) sift(values, size, i, values[i]);
    for (size_t i = size; --i;) {
        uint32_t value = values[i];
        values[i] = values[0];
        sift(values, i, 0, value);
    }
}

/* Sort a row's hashes, make them distinct with their counts, and return how many are left. */
static size_t finish_row(uint32_t *hashes, uint8_t *counts, size_t size) {
    size_t used = 0;
    sort(hashes, size);
    for (size_t i = 0; i < size; i++) {
        if (used && hashes[used - 1] == hashes[i]) {
            if (counts[used - 1] < 255) counts[used - 1]++;
            continue;
        }
        hashes[used] = hashes[i];
        counts[used++] = 1;
    }
    return used;
}

static int is_start(unsigned char byte) { return (byte & 0xc0) != 0x80; } /* of a code point in UTF-8 */

/* Append the hashes of one term, or of its trigrams; the new number of hashes, or `most` + 1 when they do not fit. */
static size_t add_term(const unsigned char *term, size_t size, int trigrams, uint32_t *hashes, size_t used, size_t most) {
    if (!trigrams) {
        if (!size) return used;
        if (used >= most) return most + 1;
        hashes[used] = hash_bytes(term, size);
        return used + 1;
    }
    size_t starts[3] = {0}, seen = 0; /* where the last three code points began */
    for (size_t i = 0; i <= size; i++) {
        if (i < size && !is_start(term[i])) continue;
        if (seen >= 3) {
            if (used >= most) return most + 1;
            hashes[used++] = hash_bytes(term + starts[0], i - starts[0]);
        }
        if (seen >= 3) starts[0] = starts[1], starts[1] = starts[2], starts[2] = i;
        else starts[seen] = i;
        seen++;
    }
    return used;
}

static int hash_texts(const unsigned char *joined, size_t size, size_t n, size_t most, int64_t *offsets, uint32_t *hashes,
                      uint8_t *counts, int trigrams) {
    size_t row = 0, row_start = 0, used = 0, term = 0;
    offsets[0] = 0;
    for (size_t i = 0; i <= size; i++) {
        int ends_text = i == size || joined[i] == '\n';
        if (!ends_text && joined[i] != ' ') continue;
        used = add_term(joined + term, i - term, trigrams, hashes, used, most);
        if (used > most) return -1;
        term = i + 1;
        if (!ends_text) continue;
        if (row == n) return -1;
        used = row_start + finish_row(hashes + row_start, counts + row_start, used - row_start);
        offsets[++row] = (int64_t)used;
        row_start = used;
    }
    return row == n ? 0 : -1;
}

int hm_term_hashes(const unsigned char *joined, size_t size, size_t n, size_t most, int64_t *offsets, uint32_t *hashes,
                   uint8_t *counts) {
    return hash_texts(joined, size, n, most, offsets, hashes, counts, 0);
}

int hm_trigram_hashes(const unsigned char *joined, size_t size, size_t n, size_t most, int64_t *offsets, uint32_t *hashes,
                      uint8_t *counts) {
    return hash_texts(joined, size, n, most, offsets, hashes, counts, 1);
}
