// What publishing a solution of the hinge loss needs, in one order of evaluation: kernel values, sums of rows,
// and the bordered system of the margin, [G 1; 1ᵀ 0] [x; t] = [p; q], by the factor RᵀR = A = G + ρ11ᵀ:
//
//     A x + (t - ρq) 1 = p,   1ᵀx = q,   so   x = A⁻¹p - β A⁻¹1,   β = (1ᵀA⁻¹p - q) / 1ᵀA⁻¹1,   t = β + ρq
//
// Each sum has one order, whatever the vectors of a machine, so that solutions have the same bits everywhere.
#include "kernels.h"

namespace {

using Vector = In<double, 1>;
using Matrix = In<double, 2>;
using OutVector = Out<double, 1>;
using OutMatrix = Out<double, 2>;
using Places = In<int64_t, 1>;
using Strided = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

const double DEPENDENT = 1e-12;  // part of its norm² that a row must have of its own to be independent
const int BLOCK = 8;             // rows whose products an entry loses at once

// Writes kernel values of the rows of A with those of B.
void values(int kind, double gamma, double r, int degree, Matrix A, Strided B, OutMatrix out, int threads) {
  const Kernel kernel{Kernel::Kind(kind), gamma, r, degree};
  const int64_t d = A.shape(1), n = B.shape(0);
  over_rows(A.shape(0), threads, [&](int64_t first, int64_t last) {
    kernel_values(kernel, {A.data() + first * d, d, 1}, last - first, {B.data(), B.stride(0), B.stride(1)}, n, d,
                  out.data() + first * n, n);
  });
}

// out + Σ_i c_i gram[rows_i], four rows at a time.
INLINE void add_rows(const double *gram, int64_t stride, const int64_t *rows, const double *c, int64_t k,
                     double *__restrict out, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    const double *v = gram + rows[i] * stride, *w = gram + rows[i + 1] * stride;
    const double *x = gram + rows[i + 2] * stride, *y = gram + rows[i + 3] * stride;
    const double p = c[i], q = c[i + 1], r = c[i + 2], s = c[i + 3];
    for (int64_t j = 0; j < n; ++j) out[j] += p * v[j] + q * w[j] + r * x[j] + s * y[j];
  }
  for (; i < k; ++i) {
    const double *v = gram + rows[i] * stride, p = c[i];
    for (int64_t j = 0; j < n; ++j) out[j] += p * v[j];
  }
}

// The upper triangle of A ← R; false at the first pivot that is not above its limit. Each entry loses its
// products in the order of the rows.
INLINE bool factor(double *A, int64_t n, double sound) {
  std::vector<double> limit(n);
  for (int64_t i = 0; i < n; ++i) limit[i] = sound * A[i * n + i];
  for (int64_t start = 0; start < n; start += BLOCK) {
    const int64_t end = std::min(n, start + BLOCK);
    for (int64_t j = start; j < end; ++j) {
      double *row = A + j * n;
      if (!(row[j] > limit[j])) return false;
      const double root = row[j] = std::sqrt(row[j]);
      for (int64_t i = j + 1; i < n; ++i) row[i] /= root;
      for (int64_t r = j + 1; r < end; ++r) {
        double *__restrict below = A + r * n;
        for (int64_t i = r; i < n; ++i) below[i] -= row[r] * row[i];
      }
    }
    const double *u[BLOCK];
    for (int q = 0; q < BLOCK && end < n; ++q) u[q] = A + (start + q) * n;
    for (int64_t r = end; r < n; ++r) {
      double *__restrict out = A + r * n;
      for (int64_t i = r; i < n; ++i) {
        double z = out[i];
        for (int q = 0; q < BLOCK; ++q) z -= u[q][r] * u[q][i];
        out[i] = z;
      }
    }
  }
  return true;
}

#define VECTORS(ISA, TARGET)                                                                                       \
  TARGET void add_rows##ISA(const double *gram, int64_t stride, const int64_t *rows, const double *c, int64_t k,   \
                            double *out, int64_t n) { add_rows(gram, stride, rows, c, k, out, n); }                \
  TARGET bool factor##ISA(double *A, int64_t n, double sound) { return factor(A, n, sound); }
FOR_VECTORS(VECTORS)
const auto fastest_add_rows = FASTEST(add_rows);
const auto fastest_factor = FASTEST(factor);

void sum_of_rows(Matrix gram, Places rows, Vector c, OutVector out) {
  fastest_add_rows(gram.data(), gram.shape(1), rows.data(), c.data(), rows.shape(0), out.data(), out.shape(0));
}

// out[i, order[j]] = gram[lines[i], columns[order[j]]]: read in the order in which it is in memory.
void gather(Matrix gram, Places lines, Places columns, Places order, OutMatrix out) {
  for (size_t i = 0; i < lines.shape(0); ++i) {
    const double *row = gram.data() + lines.data()[i] * gram.shape(1);
    double *to = out.data() + i * out.shape(1);
    for (size_t j = 0; j < order.shape(0); ++j) to[order.data()[j]] = row[columns.data()[order.data()[j]]];
  }
}

double sum(const double *a, int64_t n) {
  double total = n ? a[0] : 0.0;
  for (int64_t i = 1; i < n; ++i) total += a[i];
  return total;
}

// x ← A⁻¹x for each of two x.
void solve(const double *R, int64_t n, double *x, double *z) {
  for (int64_t j = 0; j < n; ++j) {
    const double *row = R + j * n, s = x[j] /= row[j], t = z[j] /= row[j];
    for (int64_t i = j + 1; i < n; ++i) x[i] -= s * row[i], z[i] -= t * row[i];
  }
  for (int64_t j = n; j--;) {
    const double *row = R + j * n;
    double s = x[j], t = z[j];
    for (int64_t i = j + 1; i < n; ++i) s -= row[i] * x[i], t -= row[i] * z[i];
    x[j] = s / row[j], z[j] = t / row[j];
  }
}

// x ← x of the bordered system, where x is p; returns t.
double bordered(Matrix R, double rho, double q, OutVector x) {
  const int64_t n = x.shape(0);
  std::vector<double> ones(n, 1.0);
  solve(R.data(), n, x.data(), ones.data());
  const double beta = (sum(x.data(), n) - q) / sum(ones.data(), n);
  for (int64_t i = 0; i < n; ++i) x.data()[i] -= beta * ones[i];
  return beta + rho * q;
}

bool factored(OutMatrix A, double sound) { return fastest_factor(A.data(), A.shape(0), sound); }

// Writes the places of independent rows of A, the largest pivot first; returns their number.
int64_t pivots(Matrix A, Out<int64_t, 1> picked) {
  const int64_t n = A.shape(0);
  std::vector<double> L(n * n), left(n);
  const double *a = A.data();
  for (int64_t j = 0; j < n; ++j) left[j] = a[j * n + j];
  for (int64_t k = 0; k < n; ++k) {
    int64_t p = -1;
    double most = 0.0, *row = &L[k * n];
    for (int64_t j = 0; j < n; ++j)
      if (left[j] > most && left[j] > DEPENDENT * a[j * n + j]) p = j, most = left[j];
    if (p < 0) return k;
    std::memcpy(row, a + p * n, 8 * n);
    for (int64_t q = 0; q < k; ++q)
      for (int64_t j = 0; j < n; ++j) row[j] -= L[q * n + p] * L[q * n + j];
    const double root = std::sqrt(most);
    for (int64_t j = 0; j < n; ++j) {
      row[j] /= root;
      left[j] -= row[j] * row[j];
    }
    picked.data()[k] = p;
    left[p] = 0.0;
  }
  return n;
}

}  // namespace

void bind_publish(nb::module_ &m) {
  def(m, "kernel_values", values);
  def(m, "sum_of_rows", sum_of_rows);
  def(m, "gather", gather);
  def(m, "factored", factored);
  def(m, "bordered", bordered);
  def(m, "pivots", pivots);
}
