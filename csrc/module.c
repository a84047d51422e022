/* The Python module holomem._kernels: checks buffers, releases the GIL, calls the contract of kernels.h.
 *
 * Each function takes the name of an instruction set (where there is a choice), then buffers, the last of which is written
 * to. A wrong dtype is a TypeError, a wrong shape, layout or offset a ValueError, a row that is not there an IndexError;
 * nothing that Python can pass reads or writes out of bounds. kernels.py does all casting, copying and allocating.
 */
#ifndef Py_LIMITED_API /* the build sets it too */
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "kernels.h"

#define MOST_VIEWS 9

/* Elementary steps that are worth giving the GIL away for, about 20 us. A thread that has given it away can wait for the
 * switch interval of 5 ms to get it back, which a call on 50 candidates must not. */
#define LONG_WORK 100000

#define RUN(work, call)                 \
    do {                                \
        if ((work) < LONG_WORK) {       \
            call;                       \
        } else {                        \
            Py_BEGIN_ALLOW_THREADS      \
            call;                       \
            Py_END_ALLOW_THREADS        \
        }                               \
    } while (0)

/* The buffers of one call. */
struct views {
    Py_buffer views[MOST_VIEWS];
    int count;
};

static PyObject *release(struct views *held, PyObject *result) {
    while (held->count) PyBuffer_Release(&held->views[--held->count]);
    return result;
}

static PyObject *done(struct views *held, int ok) { return release(held, ok ? Py_NewRef(Py_None) : NULL); }

/* The element types of the contract, and the format characters that a C type of that size may have on some platform. */
struct dtype {
    const char *name, *formats;
    Py_ssize_t size;
};

static const struct dtype F32 = {"float32", "f", 4}, F64 = {"float64", "d", 8}, I8 = {"int8", "b", 1}, U8 = {"uint8", "B", 1},
                          I16 = {"int16", "h", 2}, U16 = {"uint16", "H", 2}, U32 = {"uint32", "IL", 4}, I64 = {"int64", "lq", 8},
                          U64 = {"uint64", "LQ", 8};

static int is_dtype(const Py_buffer *view, const struct dtype *dtype) {
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    return view->itemsize == dtype->size && format[0] && !format[1] && strchr(dtype->formats, format[0]);
}

/* Borrow the next buffer of the call: its view, or NULL with an exception. */
static Py_buffer *take(struct views *held, PyObject *object, const char *name, const struct dtype *dtype, int ndim, int out) {
    Py_buffer *view = &held->views[held->count];
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (out ? PyBUF_WRITABLE : 0)) < 0) return NULL;
    held->count++;
    if (!is_dtype(view, dtype)) {
        PyErr_Format(PyExc_TypeError, "%s must be %s, not format %s", name, dtype->name, view->format ? view->format : "B");
        return NULL;
    }
    if (view->ndim != ndim) {
        PyErr_Format(PyExc_ValueError, "%s must have %d dimensions, not %d", name, ndim, view->ndim);
        return NULL;
    }
    if (view->len && (uintptr_t)view->buf % (uintptr_t)dtype->size) {
        PyErr_Format(PyExc_ValueError, "%s is not aligned to its elements", name);
        return NULL;
    }
    for (int i = 0; out && view->len && i < held->count - 1; i++) {
        const Py_buffer *other = &held->views[i];
        const char *start = view->buf, *other_start = other->buf;
        if (start < other_start + other->len && other_start < start + view->len) {
            PyErr_Format(PyExc_ValueError, "%s shares memory with another argument", name);
            return NULL;
        }
    }
    return view;
}

#define IN(object, name, dtype, ndim) take(&held, object, name, &dtype, ndim, 0)
#define OUT(object, name, dtype, ndim) take(&held, object, name, &dtype, ndim, 1)

static int has_args(const char *function, Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", function, wanted, given);
    return 0;
}

/* Whether a size is as it must be; else a ValueError. */
static int same(const char *what, Py_ssize_t size, Py_ssize_t wanted) {
    if (size == wanted) return 1;
    PyErr_Format(PyExc_ValueError, "%s is %zd, but must be %zd", what, size, wanted);
    return 0;
}

/* The table of an instruction set, NULL with an exception. */
static const struct hm_kernels *table_of(PyObject *name) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(name, &size);
    const struct hm_kernels *table;
    if (!text) return NULL;
    for (size_t i = 0; (table = hm_table(i)); i++)
        if (!strcmp(table->isa, text)) return table;
    PyErr_Format(PyExc_ValueError, "no kernels %R on this machine", name);
    return NULL;
}

/* The chosen rows, or all n of them. */
struct rows {
    const int64_t *chosen; /* NULL: all */
    Py_ssize_t count;
};

static int take_rows(struct views *held, PyObject *object, Py_ssize_t n, struct rows *rows) {
    rows->chosen = NULL;
    rows->count = n;
    if (object == Py_None) return 1;
    Py_buffer *view = take(held, object, "rows", &I64, 1, 0);
    if (!view) return 0;
    rows->chosen = view->buf;
    rows->count = view->shape[0];
    for (Py_ssize_t i = 0; i < rows->count; i++) {
        if (rows->chosen[i] < 0 || rows->chosen[i] >= n) {
            PyErr_Format(PyExc_IndexError, "row %lld is not among the %zd rows", (long long)rows->chosen[i], n);
            return 0;
        }
    }
    return 1;
}

/* The number of entries of the chosen rows, -1 with an exception when one of them reaches beyond the hashes. */
static Py_ssize_t count_entries(const Py_buffer *offsets, Py_ssize_t entries, const struct rows *rows) {
    const int64_t *at = offsets->buf;
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < rows->count; i++) {
        Py_ssize_t row = rows->chosen ? (Py_ssize_t)rows->chosen[i] : i;
        if (at[row] < 0 || at[row] > at[row + 1] || at[row + 1] > entries) {
            PyErr_Format(PyExc_ValueError, "the offsets of row %zd are not ascending within %zd entries", row, entries);
            return -1;
        }
        total += (Py_ssize_t)(at[row + 1] - at[row]);
    }
    return total;
}

static int is_query(const Py_buffer *query) {
    if ((uint64_t)query->shape[0] <= UINT32_MAX) return 1;
    PyErr_SetString(PyExc_ValueError, "the query has too many hashes");
    return 0;
}

static PyObject *available(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none)) {
    Py_ssize_t count = 0;
    while (hm_table((size_t)count)) count++;
    PyObject *names = PyTuple_New(count);
    for (Py_ssize_t i = 0; names && i < count; i++) {
        PyObject *name = PyUnicode_FromString(hm_table((size_t)i)->isa);
        if (!name || PyTuple_SetItem(names, i, name) < 0) Py_CLEAR(names);
    }
    return names;
}

static PyObject *dot(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *rows, *query, *out;
    if (!has_args("dot", nargs, 4) || !(table = table_of(args[0]))) return NULL;
    int ok = (rows = IN(args[1], "rows", F32, 2)) && (query = IN(args[2], "query", F32, 1)) &&
             (out = OUT(args[3], "out", F32, 1)) && same("the width of query", query->shape[0], rows->shape[1]) &&
             same("the length of out", out->shape[0], rows->shape[0]);
    if (ok) {
        size_t n = (size_t)rows->shape[0], d = (size_t)rows->shape[1];
        RUN(n * d, table->dot(rows->buf, query->buf, n, d, out->buf));
    }
    return done(&held, ok);
}

/* dot_blobs(isa, blobs, query, places, out): `places` (n) uint64 is room for the blobs' addresses. */
static PyObject *dot_blobs(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *query, *places, *out;
    if (!has_args("dot_blobs", nargs, 5) || !(table = table_of(args[0]))) return NULL;
    if (!PyTuple_Check(args[1])) { /* a list could lose a blob while the GIL is released */
        PyErr_SetString(PyExc_TypeError, "blobs must be a tuple");
        return NULL;
    }
    Py_ssize_t n = PyTuple_Size(args[1]);
    int ok = (query = IN(args[2], "query", F32, 1)) && (places = OUT(args[3], "places", U64, 1)) &&
             (out = OUT(args[4], "out", F32, 1)) && same("the length of places", places->shape[0], n) &&
             same("the length of out", out->shape[0], n);
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *blob = PyTuple_GetItem(args[1], i);
        char *bytes = NULL;
        Py_ssize_t size = -1;
        ok = blob == Py_None || PyBytes_AsStringAndSize(blob, &bytes, &size) == 0;
        ((const unsigned char **)places->buf)[i] = size == query->len ? (const unsigned char *)bytes : NULL;
    }
    if (ok) {
        size_t d = (size_t)query->shape[0];
        RUN((size_t)n * d, table->dot_blobs(places->buf, query->buf, (size_t)n, d, out->buf));
    }
    return done(&held, ok);
}

static PyObject *top_k(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *scores, *out;
    if (!has_args("top_k", nargs, 3) || !(table = table_of(args[0]))) return NULL;
    int ok = (scores = IN(args[1], "scores", F32, 1)) && (out = OUT(args[2], "out", I64, 1));
    if (ok && out->shape[0] > scores->shape[0]) {
        PyErr_SetString(PyExc_ValueError, "out is longer than scores");
        ok = 0;
    }
    if (ok) {
        size_t n = (size_t)scores->shape[0], k = (size_t)out->shape[0];
        RUN(n + 20 * k, table->top_k(scores->buf, n, k, out->buf));
    }
    return done(&held, ok);
}

static PyObject *jaccard(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *query, *offsets, *hashes, *out;
    struct rows rows;
    Py_ssize_t work = -1;
    if (!has_args("jaccard", nargs, 6) || !(table = table_of(args[0]))) return NULL;
    int ok = (query = IN(args[1], "query", U32, 1)) && is_query(query) && (offsets = IN(args[2], "offsets", I64, 1)) &&
             (hashes = IN(args[3], "hashes", U32, 1)) && take_rows(&held, args[4], offsets->shape[0] - 1, &rows) &&
             (out = OUT(args[5], "out", F32, 1)) && same("the length of out", out->shape[0], rows.count) &&
             (work = count_entries(offsets, hashes->shape[0], &rows)) >= 0;
    if (ok) {
        RUN(work, table->jaccard(query->buf, (size_t)query->shape[0], offsets->buf, hashes->buf, rows.chosen,
                                 (size_t)rows.count, out->buf));
    }
    return done(&held, ok);
}

static PyObject *overlap(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *query, *weights, *offsets, *hashes, *counts, *norms, *out;
    struct rows rows;
    Py_ssize_t work = -1;
    if (!has_args("overlap", nargs, 9) || !(table = table_of(args[0]))) return NULL;
    int ok = (query = IN(args[1], "query", U32, 1)) && is_query(query) && (weights = IN(args[2], "weights", F32, 1)) &&
             (offsets = IN(args[3], "offsets", I64, 1)) && (hashes = IN(args[4], "hashes", U32, 1)) &&
             (counts = IN(args[5], "counts", U8, 1)) && (norms = IN(args[6], "norms", F32, 1)) &&
             take_rows(&held, args[7], offsets->shape[0] - 1, &rows) && (out = OUT(args[8], "out", F32, 1)) &&
             same("the length of weights", weights->shape[0], query->shape[0]) &&
             same("the length of counts", counts->shape[0], hashes->shape[0]) &&
             same("the length of norms", norms->shape[0], offsets->shape[0] - 1) &&
             same("the length of out", out->shape[0], rows.count) &&
             (work = count_entries(offsets, hashes->shape[0], &rows)) >= 0;
    if (ok) {
        RUN(work, table->overlap(query->buf, weights->buf, (size_t)query->shape[0], offsets->buf, hashes->buf, counts->buf,
                                 norms->buf, rows.chosen, (size_t)rows.count, out->buf));
    }
    return done(&held, ok);
}

typedef int hashes_of(const unsigned char *, size_t, size_t, size_t, int64_t *, uint32_t *, uint8_t *);

static PyObject *hash_texts(const char *name, hashes_of *kernel, PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    Py_buffer *joined, *offsets, *hashes, *counts;
    if (!has_args(name, nargs, 4)) return NULL;
    int ok = (joined = IN(args[0], "joined", U8, 1)) && (offsets = OUT(args[1], "offsets", I64, 1)) &&
             (hashes = OUT(args[2], "hashes", U32, 1)) && (counts = OUT(args[3], "counts", U8, 1)) &&
             same("the length of counts", counts->shape[0], hashes->shape[0]);
    if (ok && offsets->shape[0] < 2) {
        PyErr_SetString(PyExc_ValueError, "offsets must have one value more than there are texts, of which one is needed");
        ok = 0;
    }
    if (ok) {
        int failed;
        RUN(joined->len, failed = kernel(joined->buf, (size_t)joined->len, (size_t)offsets->shape[0] - 1,
                                         (size_t)hashes->shape[0], offsets->buf, hashes->buf, counts->buf));
        if (failed) PyErr_SetString(PyExc_ValueError, "another number of texts, or more terms, than the outputs have room for");
        ok = !failed;
    }
    return done(&held, ok);
}

static PyObject *term_hashes(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    return hash_texts("term_hashes", hm_term_hashes, args, nargs);
}

static PyObject *trigram_hashes(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    return hash_texts("trigram_hashes", hm_trigram_hashes, args, nargs);
}

static PyObject *atom(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *token, *out;
    if (!has_args("atom", nargs, 3) || !(table = table_of(args[0]))) return NULL;
    int ok = (token = IN(args[1], "token", U8, 1)) && (out = OUT(args[2], "out", U16, 1));
    if (ok) {
        size_t size = (size_t)token->len, d = (size_t)out->shape[0];
        RUN(size + 10 * d, table->atom(token->buf, size, d, out->buf));
    }
    return done(&held, ok);
}

static PyObject *bundle_turns(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *turns, *out;
    if (!has_args("bundle_turns", nargs, 3) || !(table = table_of(args[0]))) return NULL;
    int ok = (turns = IN(args[1], "turns", U16, 2)) && (out = OUT(args[2], "out", F64, 1)) &&
             same("the width of out", out->shape[0], turns->shape[1]);
    if (ok) {
        size_t k = (size_t)turns->shape[0], d = (size_t)turns->shape[1];
        RUN(10 * k * d, table->bundle_turns(turns->buf, k, d, out->buf));
    }
    return done(&held, ok);
}

static PyObject *bundle(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *phases, *out;
    if (!has_args("bundle", nargs, 3) || !(table = table_of(args[0]))) return NULL;
    int ok = (phases = IN(args[1], "phases", F64, 2)) && (out = OUT(args[2], "out", F64, 1)) &&
             same("the width of out", out->shape[0], phases->shape[1]);
    if (ok) {
        size_t k = (size_t)phases->shape[0], d = (size_t)phases->shape[1];
        RUN(10 * k * d, table->bundle(phases->buf, k, d, out->buf));
    }
    return done(&held, ok);
}

static PyObject *pairs(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *phases, *out;
    if (!has_args("pairs", nargs, 3) || !(table = table_of(args[0]))) return NULL;
    int ok = (phases = IN(args[1], "phases", F64, 2)) && (out = OUT(args[2], "out", I8, 2)) &&
             same("the length of out", out->shape[0], phases->shape[0]) &&
             same("the width of out", out->shape[1], 2 * phases->shape[1]);
    if (ok) {
        size_t n = (size_t)phases->shape[0], d = (size_t)phases->shape[1];
        RUN(5 * n * d, table->pairs(phases->buf, n, d, out->buf));
    }
    return done(&held, ok);
}

/* The arguments that both similarities share, up to `rows`. */
static int take_pairs(struct views *held, PyObject *const *args, Py_buffer **pairs, Py_buffer **keys, Py_buffer **scales,
                      struct rows *rows) {
    if (!(*pairs = take(held, args[1], "pairs", &I8, 2, 0)) || !(*keys = take(held, args[2], "keys", &I16, 2, 0)) ||
        !(*scales = take(held, args[3], "scales", &F32, 1, 0)) ||
        !same("the width of keys", (*keys)->shape[1], (*pairs)->shape[1]) ||
        !same("the length of scales", (*scales)->shape[0], (*keys)->shape[0]) ||
        !same("the width of pairs modulo 2", (*pairs)->shape[1] % 2, 0))
        return 0;
    return take_rows(held, args[4], (*pairs)->shape[0], rows);
}

static PyObject *hrr_similarity(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs) {
    struct views held = {.count = 0};
    const struct hm_kernels *table;
    Py_buffer *pairs, *keys, *scales, *out;
    struct rows rows;
    if (!has_args("hrr_similarity", nargs, 6) || !(table = table_of(args[0]))) return NULL;
    int ok = take_pairs(&held, args, &pairs, &keys, &scales, &rows) && (out = OUT(args[5], "out", F32, 2)) &&
             same("the length of out", out->shape[0], keys->shape[0]) && same("the width of out", out->shape[1], rows.count);
    if (ok) {
        size_t e = (size_t)keys->shape[0], r = (size_t)rows.count, d = (size_t)pairs->shape[1] / 2;
        RUN(e * r * d, table->hrr_similarity(pairs->buf, keys->buf, scales->buf, rows.chosen, e, r, d, out->buf));
    }
    return done(&held, ok);
}

#define METHOD(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    {"available", available, METH_NOARGS, "Names of the instruction sets that this machine can run, the best first."},
    METHOD(dot),          METHOD(dot_blobs),          METHOD(top_k),       METHOD(jaccard), METHOD(overlap),
    METHOD(term_hashes),  METHOD(trigram_hashes),     METHOD(atom),        METHOD(bundle),  METHOD(bundle_turns),
    METHOD(pairs),        METHOD(hrr_similarity),
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "holomem._kernels",
    .m_doc = "The compiled kernels; holomem.kernels is their door, csrc/kernels.h their contract.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
