#include "factor.h"

#include "kernels.h"
#include "tolerances.h"

namespace {

const int LANES = 8, BLOCK = 8;
const int SPARE = 48;  // members that there is room for, beyond those there are

// Σ a_i b_i, in as many sums as there are lanes.
INLINE double dot(const double *a, const double *b, int64_t n) {
  double sums[LANES] = {}, total = 0;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; ++l) sums[l] += a[i + l] * b[i + l];
  for (; i < n; ++i) total += a[i] * b[i];
  for (double s : sums) total += s;
  return total;
}

// The triangle's rows are `stride` apart.
INLINE void forward(const double *R, int64_t stride, int64_t k, double *__restrict a, double *__restrict b) {
  for (int64_t j = 0; j < k; ++j) {
    const double *row = R + j * stride, s = a[j] /= row[j], t = b ? b[j] /= row[j] : 0.0;
    if (b)
      for (int64_t i = j + 1; i < k; ++i) a[i] -= s * row[i], b[i] -= t * row[i];
    else
      for (int64_t i = j + 1; i < k; ++i) a[i] -= s * row[i];
  }
}

INLINE void backward(const double *R, int64_t stride, int64_t k, double *a, double *b) {
  for (int64_t j = k; j--;) {
    const double *row = R + j * stride + j;
    a[j] = (a[j] - dot(row + 1, a + j + 1, k - j - 1)) / row[0];
    if (b) b[j] = (b[j] - dot(row + 1, b + j + 1, k - j - 1)) / row[0];
  }
}

// Turns two rows by (c, s), from their second number on; the upper one moves a place to the left.
INLINE void rotate(double *upper, double *__restrict lower, const double *__restrict other, double c, double s,
                   int64_t n) {
  double *__restrict out = upper;
  for (int64_t j = 0; j < n; ++j) {
    const double t = lower[j], v = other[j];
    out[j] = c * t + s * v;
    lower[j] = c * v - s * t;
  }
}

// Eight rows of A from `start` on ← rows of R, rows before them being that: the products of a tile of 8 × 8 entries
// are subtracted in registers, in the order of the rows.
template <class F> INLINE bool block(F tile, double *A, int64_t stride, int64_t n, int64_t start, const double *limit) {
  const int64_t end = std::min<int64_t>(n, start + BLOCK);
  int64_t c = start;
  for (; end - start == BLOCK && c + BLOCK <= n; c += BLOCK) tile(A, stride, start, c);
  for (; c < n; ++c)
    for (int64_t r = start; r < end; ++r) {
      double z = A[r * stride + c];
      for (int64_t j = 0; j < start; ++j) z -= A[j * stride + r] * A[j * stride + c];
      A[r * stride + c] = z;
    }
  for (int64_t j = start; j < end; ++j) {
    double *__restrict row = A + j * stride;
    if (!(row[j] > limit[j])) return false;
    const double root = row[j] = std::sqrt(row[j]);
    for (int64_t i = j + 1; i < n; ++i) row[i] /= root;
    for (int64_t r = j + 1; r < end; ++r) {
      double *__restrict below = A + r * stride;
      for (int64_t i = r; i < n; ++i) below[i] -= row[r] * row[i];
    }
  }
  return true;
}

#define FACTOR(ISA, TARGET)                                                                                         \
  TARGET void forward##ISA(const double *R, int64_t stride, int64_t k, double *a, double *b) {                      \
    forward(R, stride, k, a, b);                                                                                    \
  }                                                                                                                 \
  TARGET void backward##ISA(const double *R, int64_t stride, int64_t k, double *a, double *b) {                     \
    backward(R, stride, k, a, b);                                                                                   \
  }                                                                                                                 \
  TARGET void rotate##ISA(double *upper, double *lower, const double *other, double c, double s, int64_t n) {       \
    rotate(upper, lower, other, c, s, n);                                                                           \
  }                                                                                                                 \
  TARGET void tile##ISA(double *A, int64_t stride, int64_t start, int64_t c) {                                      \
    typedef double Lanes __attribute__((vector_size(8 * BLOCK), aligned(8)));                                       \
    Lanes s[BLOCK];                                                                                                 \
    for (int r = 0; r < BLOCK; ++r) s[r] = *(const Lanes *)(A + (start + r) * stride + c);                          \
    for (int64_t j = 0; j < start; ++j) {                                                                           \
      const double *row = A + j * stride;                                                                           \
      const Lanes v = *(const Lanes *)(row + c);                                                                    \
      for (int r = 0; r < BLOCK; ++r) s[r] -= row[start + r] * v;                                                   \
    }                                                                                                               \
    for (int r = 0; r < BLOCK; ++r) *(Lanes *)(A + (start + r) * stride + c) = s[r];                                \
  }                                                                                                                 \
  TARGET bool block##ISA(double *A, int64_t stride, int64_t n, int64_t start, const double *limit) {                \
    return block(tile##ISA, A, stride, n, start, limit);                                                            \
  }
FOR_VECTORS(FACTOR)
const auto fast_forward = FASTEST(forward);
const auto fast_backward = FASTEST(backward);
const auto fast_rotate = FASTEST(rotate);
const auto fast_block = FASTEST(block);

// The upper triangle of A ← R; false at the first pivot that is not above this part of its diagonal. Each entry loses
// its products one after the other, in the order of the rows: its bits are the same on every machine.
bool cholesky(double *A, int64_t stride, int64_t n, double sound) {
  std::vector<double> limit(n);
  for (int64_t i = 0; i < n; ++i) limit[i] = sound * A[i * stride + i];
  for (int64_t start = 0; start < n; start += BLOCK)
    if (!fast_block(A, stride, n, start, limit.data())) return false;
  return true;
}

}  // namespace

void Factor::resize(int members) {
  std::vector<double> other(size_t(members) * members);
  for (int i = 0; i < k; ++i) std::copy_n(row(i), k, &other[size_t(i) * members]);
  R.swap(other);
  room = members;
  for (auto *values : {&v, &ones, &x, &size, &column, &scratch}) values->resize(members);
}

void Factor::forget() {
  if (room > k + 4 * SPARE) resize(k + SPARE);
  for (int i = 0; i < room; ++i) std::fill(row(i) + (i < k ? k : 0), row(i) + room, 0.0);
  for (auto *values : {&v, &ones, &x, &size, &column, &scratch}) std::fill(values->begin(), values->end(), 0.0);
}

void Factor::reserve(int members) {
  if (members > room) resize(members + SPARE);
}

bool Factor::set(const std::vector<double> &G, int n, double shift, double sound) {
  k = 0, rho = shift;
  reserve(n + 1);
  for (int i = 0; i < n; ++i)
    for (int j = i; j < n; ++j) row(i)[j] = G[size_t(i) * n + j] + rho;
  const bool done = cholesky(R.data(), room, n, sound);
  for (int i = 0; i < n; ++i) std::fill_n(row(i), i, 0.0);
  if (!done) return false;
  k = n;
  return true;
}

void Factor::forward(double *a, double *b) { fast_forward(R.data(), room, k, a, b); }

void Factor::backward(double *a, double *b) { fast_backward(R.data(), room, k, a, b); }

bool Factor::grow(double diagonal) {
  const double pivot = diagonal - dot(column.data(), column.data(), k);
  if (!(pivot > SOUND * diagonal)) return false;
  for (int i = 0; i < k; ++i) row(i)[k] = column[i];
  row(k)[k] = std::sqrt(pivot);
  ++k;
  return true;
}

void Factor::extend(double value) {
  const int last = k - 1;
  v[last] = (value - dot(column.data(), v.data(), last)) / row(last)[last];
  ones[last] = (1.0 - dot(column.data(), ones.data(), last)) / row(last)[last];
}

void Factor::remove(int place) {
  for (int i = 0; i < place; ++i) std::copy(row(i) + place + 1, row(i) + k, row(i) + place);
  double *lower = scratch.data(), at_v = v[place], at_ones = ones[place];
  std::copy(row(place) + place, row(place) + k, lower + place);
  for (int i = place; i + 1 < k; ++i) {
    const double *other = row(i + 1);
    const double a = lower[i + 1], b = other[i + 1], r = std::hypot(a, b), c = a / r, s = b / r;
    fast_rotate(row(i) + i, lower + i + 1, other + i + 1, c, s, k - i - 1);
    const double next_v = v[i + 1], next_ones = ones[i + 1];
    v[i] = c * at_v + s * next_v, ones[i] = c * at_ones + s * next_ones;
    at_v = c * next_v - s * at_v, at_ones = c * next_ones - s * at_ones;
  }
  --k;
}

double Factor::solve(double q) {
  const double beta = (dot(ones.data(), v.data(), k) - q) / dot(ones.data(), ones.data(), k);
  std::copy_n(v.data(), k, x.data());
  std::copy_n(ones.data(), k, scratch.data());
  backward(x.data(), scratch.data());
  for (int i = 0; i < k; ++i) {
    size[i] = std::fabs(x[i]) + std::fabs(beta * scratch[i]);
    x[i] -= beta * scratch[i];
  }
  return beta + rho * q;
}
