/* Python's side of the kernels: takes buffers, checks all that kernels.h asks for, releases the GIL, calls.
 *
 * Each function checks before it computes, so that no argument from Python can make a kernel read or write outside of a
 * buffer. The outputs come last; they are allocated by kernels.py. A buffer must be C-contiguous, aligned and of the
 * right type: TypeError, ValueError, BufferError (read-only output) or IndexError (a row that is not there) otherwise. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernels.h"

#include <string.h>

#define MOST 9 /* buffers of one call */

enum kind { FLOATS, SIGNED, UNSIGNED };

/* What an argument must be. */
struct want {
    const char *name;
    enum kind kind;
    size_t item;
    int ndim;
    int flags; /* OUT, OPTIONAL */
};
enum { OUT = 1, OPTIONAL = 2 };

/* The buffers of one call; `release` gives all of them back. */
struct call {
    Py_buffer views[MOST];
    size_t taken;
};

static void release(struct call *call) {
    while (call->taken) PyBuffer_Release(&call->views[--call->taken]);
}

static int is_kind(const char *format, enum kind kind) {
    static const char *const codes[] = {"fd", "bhilq", "BHILQ"};
    if (!format) return kind == UNSIGNED; /* plain bytes */
    if (*format == '<' || *format == '=' || *format == '@') format++;
    return format[0] && !format[1] && strchr(codes[kind], format[0]);
}

/* Take one argument; 0, or -1 with an exception. An optional None becomes a view without memory. */
static int take(struct call *call, PyObject *object, const struct want *want) {
    Py_buffer *view = &call->views[call->taken];
    if (object == Py_None && want->flags & OPTIONAL) {
        memset(view, 0, sizeof *view);
        call->taken++;
        return 0;
    }
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (want->flags & OUT ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0) return -1;
    call->taken++;
    if ((size_t)view->itemsize != want->item || !is_kind(view->format, want->kind)) {
        PyErr_Format(PyExc_TypeError, "%s has items of type '%s' (%zd bytes), which is not the type it must have", want->name,
                     view->format ? view->format : "B", view->itemsize);
        return -1;
    }
    if (view->ndim != want->ndim) {
        PyErr_Format(PyExc_ValueError, "%s must have %d dimensions, not %d", want->name, want->ndim, view->ndim);
        return -1;
    }
    if ((uintptr_t)view->buf % want->item) {
        PyErr_Format(PyExc_ValueError, "%s is not aligned", want->name);
        return -1;
    }
    return 0;
}

static int take_all(struct call *call, PyObject *const *args, Py_ssize_t given, const struct want *wants, size_t count) {
    if ((size_t)given != count) {
        PyErr_Format(PyExc_TypeError, "takes %zu buffers, %zd given", count, given);
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        if (take(call, args[i], &wants[i]) < 0) return -1;
    return 0;
}

static size_t extent(const Py_buffer *view, int axis) { return (size_t)view->shape[axis]; }

/* 0 if two sizes are the same, else -1 with an exception. */
static int same(const char *what, size_t size, size_t other) {
    if (size == other) return 0;
    PyErr_Format(PyExc_ValueError, "%s is %zu, but must be %zu", what, size, other);
    return -1;
}

/* How many rows are chosen: all n, or those that `rows` names, each checked. -1 with an exception. */
static Py_ssize_t chosen(const Py_buffer *rows, size_t n) {
    if (!rows->obj) return (Py_ssize_t)n;
    const int64_t *at = rows->buf;
    for (size_t i = 0; i < extent(rows, 0); i++)
        if (at[i] < 0 || (uint64_t)at[i] >= n) {
            PyErr_Format(PyExc_IndexError, "row %lld is not among the %zu rows", (long long)at[i], n);
            return -1;
        }
    return rows->shape[0];
}

/* As `chosen`, for the rows of a CSR, whose offsets are checked too. */
static Py_ssize_t chosen_csr(const Py_buffer *offsets, const Py_buffer *hashes, const Py_buffer *rows) {
    if (!extent(offsets, 0)) {
        PyErr_SetString(PyExc_ValueError, "offsets must have one value more than there are rows, not none");
        return -1;
    }
    Py_ssize_t r = chosen(rows, extent(offsets, 0) - 1);
    const int64_t *at = offsets->buf, *row = rows->buf, size = (int64_t)extent(hashes, 0);
    for (Py_ssize_t i = 0; i < r; i++) {
        int64_t start = at[row ? row[i] : i], end = at[(row ? row[i] : i) + 1];
        if (start < 0 || end < start || end > size) {
            PyErr_Format(PyExc_ValueError, "offsets from %lld to %lld are not ascending within %lld hashes",
                         (long long)start, (long long)end, (long long)size);
            return -1;
        }
    }
    return r;
}

/* The table that a call names, NULL with an exception when this machine has none of that name. */
static const struct hm_kernels *table_of(PyObject *const *args, Py_ssize_t given) {
    const struct hm_kernels *table;
    if (!given || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "the first argument must be the name of an instruction set");
        return NULL;
    }
    for (size_t i = 0; (table = hm_table(i)) != NULL; i++)
        if (PyUnicode_CompareWithASCIIString(args[0], table->isa) == 0) return table;
    PyErr_Format(PyExc_ValueError, "no kernels %R on this machine", args[0]);
    return NULL;
}

/* Every function below: `int ok` says whether the checks passed; then release, then None or the exception. */
#define BEGIN(...)                                                                                         \
    static const struct want wants[] = {__VA_ARGS__};                                                      \
    struct call call = {.taken = 0};                                                                       \
    const Py_buffer *view = call.views;                                                                    \
    const struct hm_kernels *table = table_of(args, given);                                                \
    int ok = table && take_all(&call, args + 1, given - 1, wants, sizeof wants / sizeof *wants) == 0;      \
    (void)module
#define END                   \
    release(&call);           \
    if (!ok) return NULL;     \
    Py_RETURN_NONE

static PyObject *dot(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    BEGIN({"rows", FLOATS, 4, 2, 0}, {"query", FLOATS, 4, 1, 0}, {"out", FLOATS, 4, 1, OUT});
    ok = ok && same("the query's width", extent(&view[1], 0), extent(&view[0], 1)) == 0 &&
         same("the size of out", extent(&view[2], 0), extent(&view[0], 0)) == 0;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        table->dot(view[0].buf, view[1].buf, extent(&view[0], 0), extent(&view[0], 1), view[2].buf);
        Py_END_ALLOW_THREADS
    }
    END;
}

/* Put the address of each blob of `size` bytes at its place, NULL for None and for another size. */
static int find_blobs(PyObject *blobs, size_t size, const unsigned char **places) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(blobs); i++) {
        PyObject *blob = PyTuple_GetItem(blobs, i);
        char *bytes = NULL;
        Py_ssize_t length = -1;
        if (blob != Py_None && PyBytes_AsStringAndSize(blob, &bytes, &length) < 0) return -1;
        places[i] = length >= 0 && (size_t)length == size ? (const unsigned char *)bytes : NULL;
    }
    return 0;
}

/* (isa, blobs, query, places, out): the tuple holds the blobs, `places` (n,) uint64 is room for their addresses. */
static PyObject *dot_blobs(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    static const struct want wants[] = {
        {"query", FLOATS, 4, 1, 0}, {"places", UNSIGNED, 8, 1, OUT}, {"out", FLOATS, 4, 1, OUT}};
    struct call call = {.taken = 0};
    const Py_buffer *view = call.views;
    const struct hm_kernels *table = table_of(args, given);
    int ok = table != NULL;
    (void)module;
    if (ok && (given < 2 || !PyTuple_Check(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "blobs must be a tuple");
        ok = 0;
    }
    ok = ok && take_all(&call, args + 2, given - 2, wants, 3) == 0;
    if (ok) {
        size_t n = (size_t)PyTuple_Size(args[1]), d = extent(&view[0], 0);
        ok = sizeof(void *) <= 8 && same("the size of places", extent(&view[1], 0), n) == 0 &&
             same("the size of out", extent(&view[2], 0), n) == 0 && find_blobs(args[1], 4 * d, view[1].buf) == 0;
        if (ok) {
            Py_BEGIN_ALLOW_THREADS
            table->dot_blobs(view[1].buf, view[0].buf, n, d, view[2].buf);
            Py_END_ALLOW_THREADS
        }
    }
    END;
}

static PyObject *top_k(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    BEGIN({"scores", FLOATS, 4, 1, 0}, {"out", SIGNED, 8, 1, OUT});
    if (ok && extent(&view[1], 0) > extent(&view[0], 0)) {
        PyErr_SetString(PyExc_ValueError, "out is larger than scores");
        ok = 0;
    }
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        table->top_k(view[0].buf, extent(&view[0], 0), extent(&view[1], 0), view[1].buf);
        Py_END_ALLOW_THREADS
    }
    END;
}

static PyObject *jaccard(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    BEGIN({"query", UNSIGNED, 4, 1, 0}, {"offsets", SIGNED, 8, 1, 0}, {"hashes", UNSIGNED, 4, 1, 0},
          {"rows", SIGNED, 8, 1, OPTIONAL}, {"out", FLOATS, 4, 1, OUT});
    Py_ssize_t r = ok ? chosen_csr(&view[1], &view[2], &view[3]) : -1;
    ok = r >= 0 && same("the size of out", extent(&view[4], 0), (size_t)r) == 0;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        table->jaccard(view[0].buf, extent(&view[0], 0), view[1].buf, view[2].buf, view[3].buf, (size_t)r, view[4].buf);
        Py_END_ALLOW_THREADS
    }
    END;
}

static PyObject *overlap(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    BEGIN({"query", UNSIGNED, 4, 1, 0}, {"weights", FLOATS, 4, 1, 0}, {"offsets", SIGNED, 8, 1, 0},
          {"hashes", UNSIGNED, 4, 1, 0}, {"counts", UNSIGNED, 1, 1, 0}, {"norms", FLOATS, 4, 1, 0},
          {"rows", SIGNED, 8, 1, OPTIONAL}, {"out", FLOATS, 4, 1, OUT});
    Py_ssize_t r = ok ? chosen_csr(&view[2], &view[3], &view[6]) : -1;
    ok = r >= 0 && same("the number of weights", extent(&view[1], 0), extent(&view[0], 0)) == 0 &&
         same("the number of counts", extent(&view[4], 0), extent(&view[3], 0)) == 0 &&
         same("the number of norms", extent(&view[5], 0), extent(&view[2], 0) - 1) == 0 &&
         same("the size of out", extent(&view[7], 0), (size_t)r) == 0;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        table->overlap(view[0].buf, view[1].buf, extent(&view[0], 0), view[2].buf, view[3].buf, view[4].buf, view[5].buf,
                       view[6].buf, (size_t)r, view[7].buf);
        Py_END_ALLOW_THREADS
    }
    END;
}

/* (turns or phases (k, d), out (d)) */
#define BUNDLE(name, kind, item)                                                                              \
    static PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t given) {                        \
        BEGIN({"parts", kind, item, 2, 0}, {"out", FLOATS, 8, 1, OUT});                                       \
        if (ok && !extent(&view[0], 0)) {                                                                     \
            PyErr_SetString(PyExc_ValueError, "a bundle needs at least one part");                            \
            ok = 0;                                                                                           \
        }                                                                                                     \
        ok = ok && same("the size of out", extent(&view[1], 0), extent(&view[0], 1)) == 0;                    \
        if (ok) {                                                                                             \
            Py_BEGIN_ALLOW_THREADS                                                                            \
            table->name(view[0].buf, extent(&view[0], 0), extent(&view[0], 1), view[1].buf);                  \
            Py_END_ALLOW_THREADS                                                                              \
        }                                                                                                     \
        END;                                                                                                  \
    }
BUNDLE(bundle_turns, UNSIGNED, 2)
BUNDLE(bundle, FLOATS, 8)

static PyObject *pairs(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    BEGIN({"phases", FLOATS, 8, 2, 0}, {"out", SIGNED, 1, 2, OUT});
    ok = ok && same("the rows of out", extent(&view[1], 0), extent(&view[0], 0)) == 0 &&
         same("the width of out", extent(&view[1], 1), 2 * extent(&view[0], 1)) == 0;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        table->pairs(view[0].buf, extent(&view[0], 0), extent(&view[0], 1), view[1].buf);
        Py_END_ALLOW_THREADS
    }
    END;
}

/* What both similarities check: (pairs (n, 2 d), keys (e, 2 d), rows, out); the number of rows, -1 with an exception. */
static Py_ssize_t against(const Py_buffer *view) {
    if (extent(&view[0], 1) % 2) {
        PyErr_SetString(PyExc_ValueError, "pairs must have a cosine and a sine for each phase");
        return -1;
    }
    if (same("the keys' width", extent(&view[1], 1), extent(&view[0], 1)) < 0) return -1;
    return chosen(&view[2], extent(&view[0], 0));
}

static PyObject *hrr_similarity(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    BEGIN({"pairs", SIGNED, 1, 2, 0}, {"keys", FLOATS, 4, 2, 0}, {"rows", SIGNED, 8, 1, OPTIONAL}, {"out", FLOATS, 4, 2, OUT});
    Py_ssize_t r = ok ? against(view) : -1;
    ok = r >= 0 && same("the keys of out", extent(&view[3], 0), extent(&view[1], 0)) == 0 &&
         same("the rows of out", extent(&view[3], 1), (size_t)r) == 0;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        table->hrr_similarity(view[0].buf, view[1].buf, view[2].buf, extent(&view[1], 0), (size_t)r, extent(&view[0], 1) / 2,
                              view[3].buf);
        Py_END_ALLOW_THREADS
    }
    END;
}

static PyObject *hrr_min_similarity(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    BEGIN({"pairs", SIGNED, 1, 2, 0}, {"keys", FLOATS, 4, 2, 0}, {"rows", SIGNED, 8, 1, OPTIONAL}, {"out", FLOATS, 4, 1, OUT});
    Py_ssize_t r = ok ? against(view) : -1;
    ok = r >= 0 && same("the size of out", extent(&view[3], 0), (size_t)r) == 0;
    if (ok && !extent(&view[1], 0)) {
        PyErr_SetString(PyExc_ValueError, "keys must not be empty");
        ok = 0;
    }
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        table->hrr_min_similarity(view[0].buf, view[1].buf, view[2].buf, extent(&view[1], 0), (size_t)r,
                                  extent(&view[0], 1) / 2, view[3].buf);
        Py_END_ALLOW_THREADS
    }
    END;
}

static PyObject *atom(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    static const struct want wants[] = {{"token", UNSIGNED, 1, 1, 0}, {"out", UNSIGNED, 2, 1, OUT}};
    struct call call = {.taken = 0};
    int ok = take_all(&call, args, given, wants, 2) == 0;
    (void)module;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        hm_atom(call.views[0].buf, extent(&call.views[0], 0), extent(&call.views[1], 0), call.views[1].buf);
        Py_END_ALLOW_THREADS
    }
    END;
}

/* (joined, offsets (n + 1), hashes (most), counts (most)) */
static PyObject *hash_with(int (*hash)(const unsigned char *, size_t, size_t, size_t, int64_t *, uint32_t *, uint8_t *),
                           PyObject *const *args, Py_ssize_t given) {
    static const struct want wants[] = {
        {"joined", UNSIGNED, 1, 1, 0}, {"offsets", SIGNED, 8, 1, OUT}, {"hashes", UNSIGNED, 4, 1, OUT},
        {"counts", UNSIGNED, 1, 1, OUT}};
    struct call call = {.taken = 0};
    const Py_buffer *view = call.views;
    int ok = take_all(&call, args, given, wants, 4) == 0;
    if (ok && extent(&view[1], 0) < 2) {
        PyErr_SetString(PyExc_ValueError, "offsets must have one value more than there are texts, and at least two");
        ok = 0;
    }
    ok = ok && same("the number of counts", extent(&view[3], 0), extent(&view[2], 0)) == 0;
    if (ok) {
        int failed;
        Py_BEGIN_ALLOW_THREADS
        failed = hash(view[0].buf, extent(&view[0], 0), extent(&view[1], 0) - 1, extent(&view[2], 0), view[1].buf,
                      view[2].buf, view[3].buf);
        Py_END_ALLOW_THREADS
        if (failed) {
            PyErr_SetString(PyExc_ValueError, "the texts are not as many as offsets has room for, or hashes is too small");
            ok = 0;
        }
    }
    END;
}

static PyObject *term_hashes(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    return hash_with(hm_term_hashes, args, given);
}

static PyObject *trigram_hashes(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    return hash_with(hm_trigram_hashes, args, given);
}

static PyObject *available(PyObject *module, PyObject *ignored) {
    size_t count = 0;
    (void)module, (void)ignored;
    while (hm_table(count)) count++;
    PyObject *names = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; names && i < count; i++) {
        PyObject *name = PyUnicode_FromString(hm_table(i)->isa);
        if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name) < 0) Py_CLEAR(names);
    }
    return names;
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef methods[] = {
    {"available", available, METH_NOARGS, NULL},
    FAST(dot),
    FAST(dot_blobs),
    FAST(top_k),
    FAST(jaccard),
    FAST(overlap),
    FAST(bundle_turns),
    FAST(bundle),
    FAST(pairs),
    FAST(hrr_similarity),
    FAST(hrr_min_similarity),
    FAST(atom),
    FAST(term_hashes),
    FAST(trigram_hashes),
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "holomem._kernels", .m_size = 0, .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
