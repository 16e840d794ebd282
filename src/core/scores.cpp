// Scores: sums Σ_j c_j z_j of whole numbers c_j and float64 coefficients z_j, each rounded once.
//
// Rows are taken in blocks, in which |c_j| ≤ R_j, R_j ≥ 2, ΣR ≤ 2^51. Let S = Σ_j R_j |z_j|, and
// M = 2^53 u ≥ S (1 + 2^-52 ΣR) a power of two. A coefficient is cut in two, h = fl(fl(z + M) - M) and
// q = z - h. As |z| ≤ M/2, the inner sum is between M/2 and 3M/2, where floats are multiples of u or 2u.
// So h is a multiple of u, and |q| ≤ u: Σ_j R_j |h_j| ≤ S + u ΣR ≤ M. Hence Σ_j c_j h_j and all its
// partial sums are multiples of u up to 2^53 u: float64 adds them exactly, in any order. Of
// Q = fl(Σ_j c_j q_j), each term of which is rounded at most m times, the error is at most
//
//     δ = (m + 5) 2^-53 Σ_j R_j |q_j| (1 + 2^-20) + 2^-1000,
//
// with the roundings of Q ± δ, and with what underflows. Where H + (Q - δ) and H + (Q + δ) round alike,
// the exact sum rounds to the same number; all others are added up in fixed point. As R_j belongs to a
// column, u stays fine where a column is large and its coefficient small.
#include "core.h"

#include <atomic>

#define INLINE inline __attribute__((always_inline))

namespace {

const double LARGEST = 0x1p53;  // code
const double QUICK = 0x1p50;    // codes and shifts from here on are left to fixed point
const double WHOLE = 0x1.8p52;  // t + WHOLE - WHOLE is t, rounded to a whole number, for |t| ≤ 2^51
const int ROWS = 8, RUN = 16;   // multiplied together, and columns that are added by themselves

// Codes of a row, less the shift, and their largest sizes. NaN is none: its row cannot be decided.
INLINE void coded(const double *__restrict x, const double *__restrict scale, const double *__restrict shift,
                  int64_t J, double *__restrict c, double *__restrict R) {
  for (int64_t j = 0; j < J; ++j) {
    double code = x[j] * scale[j] + WHOLE - WHOLE - shift[j], size = std::fabs(code);
    c[j] = code;
    R[j] = size > R[j] ? size : R[j];
  }
}

// Cuts T targets of Z, whose rows are `stride` apart, into rows of W, heads before rests; and δ of each.
template <int T> INLINE void cut(const double *__restrict Z, int64_t J, int64_t stride, const double *__restrict R,
                                 double m, double *__restrict W, double *delta) {
  double sizes[T] = {}, rests[T] = {}, M[T], total = 0;
  for (int64_t j = 0; j < J; ++j) {
    total += R[j];
    for (int t = 0; t < T; ++t) sizes[t] += R[j] * std::fabs(Z[j * stride + t]);
  }
  for (int t = 0; t < T; ++t) {
    int exponent;
    std::frexp(sizes[t] * (1 + 0x1p-20) * (1 + 0x1p-52 * total), &exponent);
    const bool safe = total < QUICK && sizes[t] < 0x1p900 && (sizes[t] > 0x1p-900 || sizes[t] == 0);
    M[t] = std::ldexp(1.0, safe ? exponent : 0);
    delta[t] = safe ? 0 : INFINITY;
  }
  for (int64_t j = 0; j < J; ++j)
    for (int t = 0; t < T; ++t) {
      const double z = Z[j * stride + t], head = z + M[t] - M[t];
      W[2 * j * T + t] = head;
      W[2 * j * T + T + t] = z - head;
      rests[t] += R[j] * std::fabs(z - head);
    }
  for (int t = 0; t < T; ++t)
    if (rests[t] > 0) delta[t] += rests[t] * (1 + 0x1p-20) * (m + 5) * 0x1p-53 + 0x1p-1000;
}

// A sum of products in fixed point: bin b counts 2^(32 b - 1074). Two words of a product of 54 and 53
// bits, shifted by up to 31 bits, stay below 2^95: 2^32 of them fit into a bin.
struct Fixed {
  i128 bins[72] = {};

  void add(int64_t code, double z) {
    uint64_t bits;
    std::memcpy(&bits, &z, 8);
    const int exponent = bits >> 52 & 2047, place = exponent ? exponent - 1 : 0, b = place / 32;
    const int64_t digits = (bits & ((1ull << 52) - 1)) | uint64_t(exponent > 0) << 52, power = 1ll << place % 32;
    const i128 product = i128(bits >> 63 ? -code : code) * digits;
    bins[b] += u128(uint64_t(product)) * uint64_t(power);
    bins[b + 2] += i128(int64_t(product >> 64)) * power;
  }

  double rounded() {
    uint64_t limbs[36];
    i128 carry = 0;
    for (int b = 0; b < 72; ++b, carry >>= 32) {
      const uint64_t digit = uint32_t(carry += bins[b]);
      limbs[b / 2] = b % 2 ? limbs[b / 2] | digit << 32 : digit;
    }
    return nearest(limbs, 36, 1074);
  }
};

// Rows, or the numbers of sparse ones and their columns. The rows of Z from J on have the code 1.
struct Rows {
  const double *x, *scale, *shift, *Z;
  const int64_t *starts, *columns;
  int64_t J, all, K, stride;
  double *out;
  std::vector<double> c, R, W;  // of a block
  int64_t undecided = 0;
  bool good = true;

  int64_t start(int64_t i) const { return starts ? starts[i] : i * J; }

  // Writes a score in fixed point, if all codes are numbers up to 2^53.
  void sum(int64_t i, int64_t k) {
    Fixed total;
    ++undecided;
    for (int64_t p = start(i); p < start(i + 1); ++p) {
      const int64_t j = starts ? columns[p] : p - i * J;
      const double t = x[p] * scale[j], code = std::fabs(t) < QUICK ? t + WHOLE - WHOLE : std::nearbyint(t);
      if (!(std::fabs(code) <= LARGEST)) return void(good = false);
      total.add(int64_t(code) - int64_t(shift[j]), Z[j * stride + k]);
    }
    for (int64_t j = J; j < all; ++j) total.add(1, Z[j * stride + k]);
    out[i * K + k] = total.rounded();
  }

  // Writes the scores of a block of rows.
  template <int T, class F> INLINE void score(int64_t first, int64_t last, F multiply) {
    const int64_t from = start(first), n = start(last) - from, step = starts ? 1 : ROWS;
    const bool quick = 2 * n >= all;  // else it takes longer to cut the coefficients
    const double m = starts ? all + 1 : RUN + J / RUN + all - J + 2;
    double sums[2 * ROWS * T], delta[T];
    std::fill_n(delta, T, INFINITY);
    if (quick) {
      c.resize(std::max<int64_t>(c.size(), n + ROWS * J));
      for (int64_t j = 0; j < all; ++j) R[j] = j >= J || std::fabs(shift[j]) < QUICK ? 2 : INFINITY;
      for (int64_t i = first; i < last && !starts; ++i) coded(x + i * J, scale, shift, J, &c[i * J - from], R.data());
      for (int64_t p = from, j; p < from + n && starts; ++p)
        j = columns[p], coded(x + p, scale + j, shift + j, 1, &c[p - from], &R[j]);
    }
    for (int64_t k = 0; k < K; k += T) {
      if (quick) cut<T>(Z + k, all, stride, R.data(), m, W.data(), delta);
      for (int64_t i = first; i < last; i += step) {
        std::fill_n(sums, 2 * ROWS * T, 0.0);
        if (quick && !starts) multiply(&c[i * J - from], J, W.data(), sums);
        for (int64_t p = start(i); p < start(i + 1) && quick && starts; ++p)
          for (int l = 0; l < 2 * T; ++l) sums[l] += c[p - from] * W[2 * T * columns[p] + l];
        for (int r = 0; r < step && i + r < last; ++r)
          for (int t = 0; t < T && k + t < K; ++t) {
            double H = sums[2 * T * r + t], Q = sums[2 * T * r + T + t];
            for (int64_t j = J; j < all; ++j) H += W[2 * T * j + t], Q += W[2 * T * j + T + t];
            const double low = H + (Q - delta[t]), high = H + (Q + delta[t]);
            if (low == high) out[(i + r) * K + k + t] = high;
            else sum(i + r, k + t);
          }
      }
    }
  }
};

// Scores for vectors of T heads and T rests. These are laid out before templates are inlined: hence a macro.
#define SCORE(T, TARGET)                                                                                   \
  TARGET void multiply##T(const double *c, int64_t J, const double *W, double *sums) {                     \
    typedef double Lanes __attribute__((vector_size(16 * T), aligned(8)));                                 \
    for (int64_t j = 0; j < J;) {                                                                          \
      Lanes some[ROWS] = {};                                                                               \
      for (const int64_t end = std::min(J, j + RUN); j < end; ++j)                                         \
        for (int r = 0; r < ROWS; ++r) some[r] += c[r * J + j] * ((const Lanes *)W)[j];                    \
      for (int r = 0; r < ROWS; ++r) ((Lanes *)sums)[r] += some[r];                                        \
    }                                                                                                      \
  }                                                                                                        \
  TARGET void score##T(Rows &rows, int64_t first, int64_t last) { rows.score<T>(first, last, multiply##T); }
SCORE(1, )
#if defined(__x86_64__)
SCORE(2, __attribute__((target("avx2,fma"))))
SCORE(4, __attribute__((target("avx512f"))))
const auto score = __builtin_cpu_supports("avx512f") ? score4
                   : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? score2 : score1;
#else
const auto score = score1;
#endif

// Writes scores of rows. Returns how many were left to fixed point; -1 where a code is no number up to 2^53.
// Of sparse rows, X is all numbers, in canonical form. Z has more columns than there are scores, with
// zeros: their number is a multiple of four.
int64_t scores(In<double, 2> X, In<double, 1> scale, In<double, 1> shift, In<int64_t, 1> starts,
               In<int64_t, 1> columns, In<double, 2> Z, Out<double, 2> out, int threads) {
  const int64_t n = out.shape(0), J = scale.shape(0), all = Z.shape(0), K = out.shape(1), stride = Z.shape(1);
  const int64_t *begin = starts.shape(0) ? starts.data() : nullptr;
  std::atomic<int64_t> undecided(0), bad(0);
  over_rows(n, threads, [&](int64_t first, int64_t last) {
    Rows rows{X.data(), scale.data(), shift.data(), Z.data(), begin, columns.data(), J, all, K, stride, out.data(),
              {}, std::vector<double>(all), std::vector<double>(8 * all)};
    for (int64_t end; first < last; first = end) {
      end = std::min(last, first + std::max<int64_t>(64, (1 << 14) / (all + 1)));
      if (begin) end = std::lower_bound(begin + first + 1, begin + last, begin[first] + 4 * all) - begin;
      score(rows, first, end);
    }
    undecided += rows.undecided;
    bad += !rows.good;
  });
  return bad ? -1 : int64_t(undecided);
}

}  // namespace

void bind_scores(nb::module_ &m) { def(m, "scores", scores); }
