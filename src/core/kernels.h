// Kernel values in one order of additions: k(a, b) depends on the bits of its two rows alone.
//
//     rbf   exp(-γ Σ_d (a_d - b_d)²)        poly     (γ Σ_d a_d b_d + r)^degree
//     linear  Σ_d a_d b_d                   sigmoid  tanh(γ Σ_d a_d b_d + r)
//
// Sums are taken in the order of the columns, one rounded product and one rounded addition after the other;
// many rows are done side by side. Rows of a linear kernel that has a centre come without it.
#pragma once

#include "core.h"

// A compilation of a function for each kind of vectors, and the one that this machine has.
#if defined(__x86_64__)
#define FOR_VECTORS(MAKE)                          \
  MAKE(_sse, )                                     \
  MAKE(_avx2, __attribute__((target("avx2,fma")))) \
  MAKE(_avx512, __attribute__((target("avx512f,fma"))))
#define FASTEST(NAME)                                       \
  (!__builtin_cpu_supports("fma")      ? NAME##_sse         \
   : __builtin_cpu_supports("avx512f") ? NAME##_avx512      \
   : __builtin_cpu_supports("avx2")    ? NAME##_avx2        \
                                       : NAME##_sse)
#else
#define FOR_VECTORS(MAKE) MAKE(_sse, )
#define FASTEST(NAME) NAME##_sse
#endif

struct Kernel {
  enum Kind { RBF, LINEAR, POLY, SIGMOID } kind;
  double gamma, r;
  int degree;
};

// Rows of d columns: `row` doubles from one to the next, `column` from a column to the next.
struct Points {
  const double *x;
  int64_t row, column;
};

// out[i * stride + j] = k(a_i, b_j) for m and n rows of d columns; the columns of a are contiguous.
void kernel_values(const Kernel &kernel, Points a, int64_t m, Points b, int64_t n, int64_t d, double *out,
                   int64_t stride);

// out[j] = k(x, row_j) for n rows that are contiguous in memory.
inline void line(const Kernel &kernel, const double *x, const double *rows, size_t n, size_t d, double *out) {
  kernel_values(kernel, {x, int64_t(d), 1}, 1, {rows, int64_t(d), 1}, n, d, out, n);
}
