// Y = A X for a symmetric A in float64 and a few columns X, in one pass over one triangle of A.
//
// BLAS reads A once for each column (dsymv), or copies it first (dsymm): ten columns of 784 features take
// 0.43 and 0.48 ms there, and 0.27 here. Bits are not promised: products and sums may be fused.
#include "core.h"

namespace {

typedef double Four __attribute__((vector_size(32), aligned(8)));
const int MOST = 3;  // of these for each row of X: as many as registers hold for a band of A

// What rows j to j + ROWS - 1 of the lower triangle add to Y = A X; rows of x and y are V vectors.
template <int V, int ROWS> INLINE void band(const double *A, int64_t J, int64_t j, const Four *x, Four *y) {
  Four own[ROWS][V] = {}, right[ROWS][V];
  std::memcpy(right, x + j * V, sizeof right);
  const double *a = A + j * J;
  for (int64_t i = 0; i < j; ++i)
    for (int v = 0; v < V; ++v) {
      Four below = y[i * V + v];
      for (int r = 0; r < ROWS; ++r) {
        own[r][v] += a[r * J + i] * x[i * V + v];
        below += a[r * J + i] * right[r][v];
      }
      y[i * V + v] = below;
    }
  for (int r = 0; r < ROWS; ++r)
    for (int v = 0; v < V; ++v)
      for (int s = 0; s < ROWS; ++s) own[r][v] += a[std::max(r, s) * J + j + std::min(r, s)] * right[s][v];
  for (int r = 0; r < ROWS; ++r)
    for (int v = 0; v < V; ++v) y[(j + r) * V + v] += own[r][v];
}

template <int V> INLINE void bands(const double *A, int64_t J, int part, int parts, const Four *x, Four *y) {
  const int64_t whole = J / 4 * 4;
  for (int64_t j = 4 * part; j < whole; j += 4 * parts) band<V, 4>(A, J, j, x, y);
  for (int64_t j = whole + part; j < J; j += parts) band<V, 1>(A, J, j, x, y);
}

WIDEST void product(const double *A, int64_t J, int part, int parts, int V, const Four *x, Four *y) {
  if (V == 1) bands<1>(A, J, part, parts, x, y);
  if (V == 2) bands<2>(A, J, part, parts, x, y);
  if (V == 3) bands<3>(A, J, part, parts, x, y);
}

// Y = A X; of A the lower triangle is read. Each thread has a Y of its own, and they are added up in order.
void symmetric_times(In<double, 2> A, In<double, 2> X, Out<double, 2> Y, int threads) {
  const int64_t J = A.shape(0), K = X.shape(1);
  for (int64_t first = 0; first < K; first += 4 * MOST) {
    const int64_t n = std::min<int64_t>(K - first, 4 * MOST), V = (n + 3) / 4, size = 4 * V * J;
    std::vector<double> x(size), y(threads * size);
    for (int64_t j = 0; j < J; ++j) std::memcpy(&x[4 * V * j], X.data() + j * K + first, 8 * n);
    over_rows(threads, threads, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        product(A.data(), J, t, threads, V, (const Four *)x.data(), (Four *)&y[t * size]);
    });
    for (int64_t t = 1; t < threads; ++t)
      for (int64_t i = 0; i < size; ++i) y[i] += y[t * size + i];
    for (int64_t j = 0; j < J; ++j) std::memcpy(Y.data() + j * K + first, &y[4 * V * j], 8 * n);
  }
}

}  // namespace

void bind_symmetric(nb::module_ &m) { def(m, "symmetric_times", symmetric_times); }
