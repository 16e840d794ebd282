// Kernel values by tiles of ROWS × LANES sums, each sum in the order of the columns.
#include "kernels.h"

namespace {

const int ROWS = 4, LANES = 8;          // of a tile, whose sums stay in registers
const int WIDTH_sse = 2, WIDTH_avx2 = 4, WIDTH_avx512 = 8;  // numbers of a vector
const int64_t CACHED = 1 << 16;         // numbers of b that are packed at once
const double WHOLE = 0x1.8p52;          // t + WHOLE - WHOLE is t, rounded to a whole number
const double LOWEST = -700, LOG2_E = 1.4426950408889634;  // e^x counts as 0 from LOWEST down
const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;

// e^v for LOWEST < v ≤ 700, else 0 (of a v that is below): the bits of arithmetic/elementary.py.
INLINE double exponential(double v) {
  const double w = v > LOWEST ? v : LOWEST, t = w * LOG2_E + WHOLE, k = t - WHOLE;
  const double x = (w - k * LN2_HIGH) - k * LN2_LOW;
  double e = 1.0 / 39916800 * x + 1.0 / 3628800, power;
  e = ((e * x + 1.0 / 362880) * x + 1.0 / 40320) * x + 1.0 / 5040;
  e = ((e * x + 1.0 / 720) * x + 1.0 / 120) * x + 1.0 / 24;
  e = (((e * x + 1.0 / 6) * x + 0.5) * x + 1.0) * x + 1.0;
  uint64_t bits;
  std::memcpy(&bits, &t, 8);
  bits = (bits + 1023) << 52;  // 2^k: the last digits of t are k
  std::memcpy(&power, &bits, 8);
  return w > LOWEST ? e * power : 0.0;
}

// tanh v, by a continued fraction near 0.
INLINE double tangent(double v) {
  const double e = exponential(-2.0 * std::fabs(v)), far = std::copysign((1.0 - e) / (1.0 + e), v);
  const double square = v * v < 1.0 ? v * v : 1.0;
  double below = 19.0;
  for (double odd : {17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0}) below = odd + square / below;
  return std::fabs(v) < 0.75 ? v / below : far;
}

// Makes kernel values of n sums, in place.
INLINE void finish(const Kernel &kernel, double *s, int64_t n) {
  if (kernel.kind == Kernel::LINEAR) return;
  if (kernel.kind == Kernel::RBF) {
    const double factor = -kernel.gamma;
    for (int64_t j = 0; j < n; ++j) s[j] = exponential(factor * s[j]);
    return;
  }
  for (int64_t j = 0; j < n; ++j) s[j] = kernel.gamma * s[j] + kernel.r;
  for (int64_t j = 0; j < n && kernel.kind == Kernel::SIGMOID; ++j) s[j] = tangent(s[j]);
  for (int64_t j = 0; j < n && kernel.kind == Kernel::POLY; ++j) {
    double power = 1.0;
    for (int q = 0; q < kernel.degree; ++q) power *= s[j];
    s[j] = power;
  }
}

// Values of m rows with n packed ones; `tile` sums products or squared differences of ROWS rows and LANES.
template <class F> INLINE void panels(const Kernel &kernel, F tile, const double *a, int64_t row, int64_t m,
                                      const double *packed, int64_t n, int64_t d, double *out, int64_t stride) {
  double sums[ROWS * LANES];
  for (int64_t i = 0; i < m; i += ROWS) {
    const int64_t rows = std::min<int64_t>(ROWS, m - i);
    for (int64_t j = 0; j < n; j += LANES) {
      tile(a + i * row, row, rows, packed + j * d, d, sums);
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(out + (i + r) * stride + j, sums + r * LANES, 8 * std::min<int64_t>(LANES, n - j));
    }
    for (int64_t r = 0; r < rows; ++r) finish(kernel, out + (i + r) * stride, n);
  }
}

// Vectors are laid out before templates are inlined: hence a macro.
#define VALUES(ISA, TARGET)                                                                                          \
  template <bool squared, int R>                                                                                     \
  TARGET void sums##ISA(const double *a, int64_t row, const double *b, int64_t d, double *out) {                     \
    typedef double Lanes __attribute__((vector_size(8 * WIDTH##ISA), aligned(8)));                                   \
    const int V = LANES / WIDTH##ISA;                                                                                \
    Lanes s[R][V] = {};                                                                                              \
    for (int64_t j = 0; j < d; ++j)                                                                                  \
      for (int v = 0; v < V; ++v) {                                                                                  \
        const Lanes y = ((const Lanes *)b)[j * V + v];                                                               \
        for (int r = 0; r < R; ++r) {                                                                                \
          const Lanes t = squared ? a[r * row + j] - y : a[r * row + j] * y;                                         \
          s[r][v] += squared ? t * t : t;                                                                            \
        }                                                                                                            \
      }                                                                                                              \
    for (int r = 0; r < R; ++r)                                                                                      \
      for (int v = 0; v < V; ++v) ((Lanes *)out)[r * V + v] = s[r][v];                                               \
  }                                                                                                                  \
  template <bool squared>                                                                                            \
  TARGET void tile##ISA(const double *a, int64_t row, int64_t rows, const double *b, int64_t d, double *out) {       \
    if (rows == ROWS) return sums##ISA<squared, ROWS>(a, row, b, d, out);                                            \
    for (int64_t r = 0; r < rows; ++r) sums##ISA<squared, 1>(a + r * row, row, b, d, out + r * LANES);               \
  }                                                                                                                  \
  TARGET void panels##ISA(const Kernel &kernel, const double *a, int64_t row, int64_t m, const double *packed,       \
                          int64_t n, int64_t d, double *out, int64_t stride) {                                       \
    if (kernel.kind == Kernel::RBF) panels(kernel, tile##ISA<true>, a, row, m, packed, n, d, out, stride);           \
    else panels(kernel, tile##ISA<false>, a, row, m, packed, n, d, out, stride);                                     \
  }
FOR_VECTORS(VALUES)
const auto fastest = FASTEST(panels);

// Columns of LANES rows side by side; where there are fewer, the last one again.
void pack(Points b, int64_t n, int64_t d, double *packed) {
  for (int64_t i = 0; i < n; i += LANES) {
    const double *x[LANES];
    for (int l = 0; l < LANES; ++l) x[l] = b.x + std::min(i + l, n - 1) * b.row;
    for (int64_t j = 0; j < d; ++j, packed += LANES)
      for (int l = 0; l < LANES; ++l) packed[l] = x[l][j * b.column];
  }
}

}  // namespace

void kernel_values(const Kernel &kernel, Points a, int64_t m, Points b, int64_t n, int64_t d, double *out,
                   int64_t stride) {
  if (kernel.kind == Kernel::RBF && kernel.gamma == 0) {  // whatever the distance, infinity included
    for (int64_t i = 0; i < m; ++i) std::fill_n(out + i * stride, n, 1.0);
    return;
  }
  const int64_t step = std::max<int64_t>(LANES, CACHED / (d + 1) / LANES * LANES);
  std::vector<double> packed(std::min(step, (n + LANES - 1) / LANES * LANES) * d);
  for (int64_t j = 0; j < n; j += step) {
    const int64_t some = std::min(step, n - j);
    pack({b.x + j * b.row, b.row, b.column}, some, d, packed.data());
    fastest(kernel, a.x, a.row, m, packed.data(), some, d, out + j, stride);
  }
}

namespace {

// Writes kernel values of the rows of A with those of B.
void kernel_block(int kind, double gamma, double r, int degree, In<double, 2> A,
                  nb::ndarray<const double, nb::ndim<2>, nb::device::cpu> B, Out<double, 2> out, int threads) {
  const int64_t d = A.shape(1), n = B.shape(0);
  over_rows(A.shape(0), threads, [&](int64_t first, int64_t last) {
    kernel_values({Kernel::Kind(kind), gamma, r, degree}, {A.data() + first * d, d, 1}, last - first,
                  {B.data(), B.stride(0), B.stride(1)}, n, d, out.data() + first * n, n);
  });
}

}  // namespace

void bind_kernels(nb::module_ &m) { def(m, "kernel_values", kernel_block); }
