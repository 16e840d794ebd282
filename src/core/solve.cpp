// The exact solve: what A Z = Q needs beyond float64, A = w S + diag(r) in whole numbers.
//
// The solution is X 2^-E + A⁻¹R 2^-E with X, R whole. Digits d of the next bits go into both,
//
//     X ← 2^s X + d,     R ← 2^s R - w S d - r d
//
// S has limbs of 64 bits; w ≥ 0 and r ≥ 0 have as many as it takes. R and X are kept modulo
// 2^(64 limbs): whoever calls gives them limbs enough.
#include "core.h"

#include <cstring>

using std::uint64_t;

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDEST
#endif

namespace {

// high + low, of about 106 bits (Dekker 1971, Knuth)
struct Two {
  double high, low;
};

inline Two tidy(double a, double b) {
  double s = a + b;
  return {s, b - (s - a)};
}

inline Two sum(double a, double b) {
  double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

// One number of an array with limbs in the first axis.
void load(uint64_t *v, const uint64_t *from, int64_t step, int n) {
  for (int i = 0; i < n; ++i) v[i] = from[i * step];
}

// v += a b 2^(64 at), a of two's complement, b ≥ 0: carries stay below 2^64, since
// (2^64 - 1)² + 2 (2^64 - 1) = 2^128 - 1.
void add_product(uint64_t *v, int n, const uint64_t *a, int na, uint64_t b, int at) {
  uint64_t sign = a[na - 1] >> 63 ? ~uint64_t(0) : 0, carry = 0;
  for (int i = at; i < n; ++i) {
    u128 t = u128(i - at < na ? a[i - at] : sign) * b + v[i] + carry;
    v[i] = uint64_t(t);
    carry = uint64_t(t >> 64);
  }
}

void negate(uint64_t *v, int n) {
  u128 carry = 1;
  for (int i = 0; i < n; ++i) {
    carry += uint64_t(~v[i]);
    v[i] = uint64_t(carry);
    carry >>= 64;
  }
}

bool make_positive(uint64_t *v, int n) {
  bool negative = v[n - 1] >> 63;
  if (negative) negate(v, n);
  return negative;
}

void shift_left(uint64_t *v, int n, int64_t s) {
  int64_t words = s / 64, bits = s % 64;
  for (int64_t i = n - 1; i >= 0; --i) {
    uint64_t high = i >= words ? v[i - words] : 0, low = i > words ? v[i - words - 1] : 0;
    v[i] = bits ? high << bits | low >> (64 - bits) : high;
  }
}

int64_t bit_length(const uint64_t *v, int n) {
  for (int i = n - 1; i >= 0; --i)
    if (v[i]) return 64 * i + 64 - __builtin_clzll(v[i]);
  return 0;
}

// The 64 bits of v ≥ 0 from the place `at` on, which may be negative.
uint64_t bits_from(const uint64_t *v, int n, int64_t at) {
  int64_t word = at >> 6, bits = at & 63;
  uint64_t low = word >= 0 && word < n ? v[word] : 0;
  uint64_t high = word + 1 >= 0 && word + 1 < n ? v[word + 1] : 0;
  return bits ? low >> bits | high << (64 - bits) : low;
}

bool any_below(const uint64_t *v, int64_t at) {
  for (int64_t i = 0; i < at / 64; ++i)
    if (v[i]) return true;
  return at % 64 && v[at / 64] << (64 - at % 64);
}

// The float64 nearest to v 2^-E, ties to even; v is given away. Subnormal numbers have as many bits
// as are above 2^-1074; what is beyond float64 is infinite.
double nearest(uint64_t *v, int n, int64_t E) {
  bool negative = make_positive(v, n);
  int64_t length = bit_length(v, n), bits = std::min<int64_t>(53, length - E + 1074);
  if (!length || bits < 0) return 0.0;
  int64_t drop = length - bits;
  uint64_t m = bits ? bits_from(v, n, drop) & (~uint64_t(0) >> (64 - bits)) : 0;
  if (drop > 0 && bits_from(v, n, drop - 1) & 1 && (m & 1 || any_below(v, drop - 1))) ++m;
  double size = std::ldexp(double(m), int(drop - E));
  return negative && size != 0.0 ? -size : size;
}

// X ← 2^up X + r d for each column's `up` and each row's r.
void advance(Out<uint64_t, 3> X, In<int64_t, 1> up, In<int64_t, 2> d, In<uint64_t, 2> r) {
  int n = int(X.shape(0)), nr = int(r.shape(0));
  int64_t J = X.shape(1), K = X.shape(2), step = J * K;
  uint64_t *x = X.data();
  const uint64_t *ridge = r.data();
  const int64_t *digits = d.data(), *ups = up.data();
  nb::gil_scoped_release release;
  std::vector<uint64_t> v(n);
  for (int64_t j = 0; j < J; ++j)
    for (int64_t k = 0; k < K; ++k) {
      int64_t at = j * K + k;
      load(v.data(), x + at, step, n);
      shift_left(v.data(), n, ups[k]);
      uint64_t digit = uint64_t(digits[at]);
      for (int i = 0; i < nr; ++i) add_product(v.data(), n, &digit, 1, ridge[i * J + j], i);
      for (int i = 0; i < n; ++i) x[i * step + at] = v[i];
    }
}

// total ← total + w S.
void add_multiple(Out<uint64_t, 3> total, In<uint64_t, 3> S, In<uint64_t, 1> w) {
  int n = int(total.shape(0)), L = int(S.shape(0)), nw = int(w.shape(0));
  int64_t size = S.shape(1) * S.shape(2);
  uint64_t *out = total.data();
  const uint64_t *s = S.data(), *weight = w.data();
  nb::gil_scoped_release release;
  std::vector<uint64_t> v(n), a(L);
  for (int64_t at = 0; at < size; ++at) {
    load(v.data(), out + at, size, n);
    load(a.data(), s + at, size, L);
    for (int t = 0; t < nw; ++t) add_product(v.data(), n, a.data(), L, weight[t], t);
    for (int t = 0; t < n; ++t) out[t * size + at] = v[t];
  }
}

typedef double Eight __attribute__((vector_size(64)));

// Limbs, of which the uppermost has a sign, as low + 2^23 middle + 2^46 top; whether any top is needed.
WIDEST bool cut(const uint64_t *limbs, bool has_sign, int64_t n, double *pieces) {
  int64_t any = 0;
  for (int64_t j = 0; j < n; ++j) {
    int64_t low = int64_t(limbs[j] << 41) >> 41;
    int64_t high = (has_sign ? int64_t(limbs[j]) >> 23 : int64_t(limbs[j] >> 23)) + (low < 0);
    int64_t middle = int64_t(uint64_t(high) << 41) >> 41, top = (high - middle) >> 23;
    pieces[j] = double(low), pieces[256 + j] = double(middle), pieces[512 + j] = double(top);
    any |= top;
  }
  return any;
}

// Σ_j a_j x_j of n ≤ 256 numbers, for two or three rows a of numbers up to 2^22 and eight columns of x
// up to 2^23: no sum passes 2^53, so float64 has no rounding errors, in whatever order it adds.
WIDEST void products(const double *a, int rows, const double *x, int64_t n, double *out) {
  Eight sums[6] = {}, even, odd;
  for (int64_t j = 0; j < n; j += 2) {
    std::memcpy(&even, x + 8 * j, sizeof even);
    std::memcpy(&odd, x + 8 * j + 8, sizeof odd);
    sums[0] += a[j] * even, sums[1] += a[j + 1] * odd;
    sums[2] += a[256 + j] * even, sums[3] += a[256 + j + 1] * odd;
    if (rows == 3) sums[4] += a[512 + j] * even, sums[5] += a[512 + j + 1] * odd;
  }
  for (int r = 0; r < 3; ++r) {
    sums[2 * r] += sums[2 * r + 1];
    std::memcpy(out + 8 * r, &sums[2 * r], sizeof(Eight));
  }
}

// R ← R - w S d, for |d| < 2^47 and up to 2^16 columns of S. A limb times a digit is below 2^111, so
// many of them below 2^127. Limbs are cut into pieces of 23 bits, digits into two of 24.
void subtract_product(Out<uint64_t, 3> R, In<uint64_t, 3> S, In<int64_t, 2> digits, In<uint64_t, 1> w, int threads) {
  int n = int(R.shape(0)), L = int(S.shape(0)), nw = int(w.shape(0));
  int64_t I = S.shape(1), J = S.shape(2), K = digits.shape(1), step = I * K, wide = (K + 3) / 4, even = J + J % 2;
  uint64_t *out = R.data();
  const uint64_t *s = S.data(), *weight = w.data();
  nb::gil_scoped_release release;
  std::vector<double> pieces(8 * wide * even);  // upper and lower pieces of four columns, side by side
  for (int64_t j = 0; j < J; ++j)
    for (int64_t k = 0; k < K; ++k) {
      int64_t x = digits.data()[j * K + k], high = (x + (1 << 23)) >> 24;
      double *at = &pieces[8 * (k / 4 * even + j) + 2 * (k % 4)];
      at[0] = double(high), at[1] = double(x - high * (1 << 24));
    }
  over_rows(I, threads, [=, &pieces](int64_t first, int64_t last) {
    double a[3 * 256] = {}, part[24];
    std::vector<i128> sums(K);
    std::vector<uint64_t> v(n);
    for (int64_t i = first; i < last; ++i)
      for (int l = 0; l < L; ++l) {
        std::fill(sums.begin(), sums.end(), i128(0));
        for (int64_t j = 0; j < J; j += 256) {
          const uint64_t *row = s + (l * I + i) * J + j;
          int64_t some = std::min<int64_t>(256, J - j);
          int rows = cut(row, l == L - 1, some, a) ? 3 : 2;
          if (some % 2) a[some] = a[256 + some] = a[512 + some] = 0.0;
          for (int64_t block = 0; block < wide; ++block) {
            products(a, rows, &pieces[8 * (block * even + j)], some, part);
            for (int64_t k = 4 * block; k < std::min(4 * block + 4, K); ++k)
              for (int r = 0; r < rows; ++r) {
                const double *two = part + 8 * r + 2 * (k % 4);
                sums[k] += (i128(int64_t(two[0])) * (1 << 24) + int64_t(two[1])) * (i128(1) << (23 * r));
              }
          }
        }
        for (int64_t k = 0; k < K; ++k) {
          u128 negative = u128(-sums[k]);
          uint64_t product[2] = {uint64_t(negative), uint64_t(negative >> 64)};
          load(v.data(), out + i * K + k, step, n);
          for (int t = 0; t < nw; ++t) add_product(v.data(), n, product, 2, weight[t], l + t);
          for (int t = 0; t < n; ++t) out[t * step + i * K + k] = v[t];
        }
      }
  });
}

// The first 106 bits of v as two floats below 1, the first the nearest, and their length.
int64_t leading_bits(uint64_t *v, int n, Two &both) {
  double sign = make_positive(v, n) ? -0x1p-53 : 0x1p-53;
  int64_t length = bit_length(v, n);
  double first = double(bits_from(v, n, length - 64) >> 11);
  double second = double(bits_from(v, n, length - 117) >> 11) * 0x1p-53, nearest = first + second;
  both = {sign * nearest, sign * (second - (nearest - first))};
  return length;
}

// R'_j = R_j - m_j R_b, b the last row, in two floats V with V[0] the nearest: R'_j = V 2^(x_k + e_j),
// x_k such that no V is above 1.
void leading(In<uint64_t, 3> R, In<int64_t, 1> m, In<int64_t, 1> e, Out<double, 3> V, Out<int64_t, 1> x) {
  int n = int(R.shape(0));
  int64_t J = R.shape(1), K = R.shape(2), step = J * K;
  const uint64_t *r = R.data();
  const int64_t *shift = m.data(), *place = e.data();
  double *high = V.data(), *low = high + step;
  int64_t *top = x.data();
  nb::gil_scoped_release release;
  std::vector<uint64_t> v(n), b(n);
  std::vector<int64_t> lengths(J);
  for (int64_t k = 0; k < K; ++k) {
    int64_t most = INT64_MIN;
    for (int64_t j = 0; j < J; ++j) {
      load(v.data(), r + j * K + k, step, n);
      if (shift[j]) {
        load(b.data(), r + (J - 1) * K + k, step, n);
        if (shift[j] > 0) negate(b.data(), n);
        add_product(v.data(), n, b.data(), n, shift[j] > 0 ? shift[j] : -shift[j], 0);
      }
      Two both;
      int64_t length = lengths[j] = leading_bits(v.data(), n, both);
      high[j * K + k] = both.high, low[j * K + k] = both.low;
      if (length) most = std::max(most, length - place[j]);
    }
    top[k] = most == INT64_MIN ? 0 : most;
    for (int64_t j = 0; j < J; ++j) {
      int down = int(std::max<int64_t>(lengths[j] - place[j] - top[k], -4000));
      high[j * K + k] = std::ldexp(high[j * K + k], down);
      low[j * K + k] = std::ldexp(low[j * K + k], down);
    }
  }
}

// Z = the float64 nearest to all that is within `bound` 2^places of X, times 2^-E, or NaN where there are
// several. Rounding is monotone, so it is enough to look at both ends. |X| is below a quarter of what the
// limbs hold; a bound that is not says nothing.
void decide(In<uint64_t, 3> X, In<double, 2> bound, In<int64_t, 2> places, In<int64_t, 1> E, Out<double, 2> Z) {
  int n = int(X.shape(0));
  int64_t J = X.shape(1), K = X.shape(2), step = J * K;
  const uint64_t *x = X.data();
  const double *bounds = bound.data();
  const int64_t *up = places.data(), *down = E.data();
  double *z = Z.data();
  nb::gil_scoped_release release;
  std::vector<uint64_t> low(n), high(n), off(n);
  for (int64_t at = 0; at < step; ++at) {
    int length;
    uint64_t m = uint64_t(std::ldexp(std::frexp(bounds[at], &length), 53));
    int64_t bits = m ? length + up[at] : 0, drop = std::min<int64_t>(53 - bits, 60);
    z[at] = std::nan("");
    if (bits > 64 * n - 2) continue;
    std::fill(off.begin(), off.end(), 0);
    off[0] = drop > 0 ? (m + (uint64_t(1) << drop) - 1) >> drop : m;  // rounded up
    if (drop < 0) shift_left(off.data(), n, -drop);
    load(high.data(), x + at, step, n);
    load(low.data(), x + at, step, n);
    add_product(high.data(), n, off.data(), n, 1, 0);
    negate(off.data(), n);
    add_product(low.data(), n, off.data(), n, 1, 0);
    double a = nearest(low.data(), n, down[at % K]), b = nearest(high.data(), n, down[at % K]);
    if (a == b) z[at] = a;
  }
}

// A = S' 2^-unit + diag(near), scaled to 2^-e A 2^-e with a diagonal near one, in one float64 or two, and
// S'_ij = S_ij - m_i t_j - s_i m_j: the sums of features less m. S' is made modulo 2^(64 limbs), of which
// it leaves the highest bit free; s, t have as many limbs. `there` is where S'_jj is not 0.
void matrix(In<uint64_t, 3> S, In<int64_t, 1> m, In<uint64_t, 2> s, In<uint64_t, 2> t, In<double, 1> near, int unit,
            Out<double, 3> A, Out<int64_t, 1> e, Out<bool, 1> there) {
  int L = int(S.shape(0)), parts = int(A.shape(0));
  int64_t J = S.shape(1), size = J * J;
  const uint64_t *sums = S.data(), *s_ = s.data(), *t_ = t.data();
  const int64_t *shift = m.data();
  double *out = A.data(), low = 0.0;
  nb::gil_scoped_release release;
  std::vector<uint64_t> v(L), a(L);
  std::vector<double> scale(J);
  auto less = [&](int64_t times, const uint64_t *of, int64_t j) {  // v -= times · of_j
    if (!times) return;
    load(a.data(), of + j, J, L);
    if (times > 0) negate(a.data(), L);
    add_product(v.data(), L, a.data(), L, times > 0 ? times : -times, 0);
  };
  auto entry = [&](int64_t i, int64_t j) {
    load(v.data(), sums + i * J + j, size, L);
    less(shift[i], t_, j);
    less(shift[j], s_, i);
    Two both;
    int64_t length = leading_bits(v.data(), L, both);
    low = std::ldexp(both.low, int(length - unit));
    return std::ldexp(both.high, int(length - unit));
  };
  for (int64_t j = 0; j < J; ++j) {
    double own = entry(j, j);
    there.data()[j] = own != 0.0;
    int exponent;
    std::frexp(own + near.data()[j], &exponent);
    e.data()[j] = exponent >> 1;
    scale[j] = std::ldexp(1.0, -(exponent >> 1));
  }
  for (int64_t i = 0; i < J; ++i) {
    double *row = out + i * J;
    if (L == 1 && parts == 1 && !unit) {  // the usual sums
      for (int64_t j = 0; j < J; ++j)
        row[j] = double(int64_t(sums[i * J + j] - shift[i] * t_[j] - s_[i] * shift[j])) * scale[i] * scale[j];
    } else {
      for (int64_t j = 0; j < J; ++j) {
        row[j] = entry(i, j) * scale[i] * scale[j];
        if (parts == 2) row[size + j] = low * scale[i] * scale[j];
      }
    }
    Two own = sum(row[i], near.data()[i] * scale[i] * scale[i]);
    row[i] = own.high;
    if (parts == 2) row[size + i] += own.low;
  }
}

// --- twofold arithmetic ---------------------------------------------------------------------------

inline Two product(double a, double b) {
  double p = a * b, c = 134217729.0 * a, d = 134217729.0 * b;  // 2^27 + 1
  double ah = c - (c - a), al = a - ah, bh = d - (d - b), bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

inline Two operator-(Two a, Two b) {
  Two s = sum(a.high, -b.high), t = sum(a.low, -b.low);
  s = tidy(s.high, s.low + t.high);
  return tidy(s.high, s.low + t.low);
}

inline Two operator*(Two a, Two b) {
  Two p = product(a.high, b.high);
  return tidy(p.high, p.low + (a.high * b.low + a.low * b.high));
}

inline Two operator/(Two a, Two b) {
  double first = a.high / b.high;
  Two rest = a - b * Two{first, 0.0};
  double second = rest.high / b.high;
  rest = rest - b * Two{second, 0.0};
  Two s = tidy(first, second);
  Two t = sum(s.high, rest.high / b.high), u = sum(s.low, 0.0);
  s = tidy(t.high, t.low + u.high);
  return tidy(s.high, s.low + u.low);
}

// x -= a y, number by number
WIDEST void subtract_multiple(double *__restrict xh, double *__restrict xl, Two a, const double *__restrict yh,
                              const double *__restrict yl, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    Two z = Two{xh[i], xl[i]} - a * Two{yh[i], yl[i]};
    xh[i] = z.high;
    xl[i] = z.low;
  }
}

// The first n steps of A = L D Lᵀ in the lower triangle; what is left is the Schur complement.
// Returns the first pivot that is not positive, or n. Rows are updated by a block of columns at a
// time, in the order in which one column after the other would be taken.
int64_t twofold_factor(Out<double, 3> A, int64_t n, int threads) {
  constexpr int64_t block = 32;
  int64_t J = A.shape(1);
  double *high = A.data(), *low = high + J * J;
  nb::gil_scoped_release release;
  std::vector<double> column(2 * block * J);
  for (int64_t a = 0; a < n; a += block) {
    int64_t b = std::min(a + block, n);
    for (int64_t p = a; p < b; ++p) {
      Two pivot{high[p * J + p], low[p * J + p]};
      if (!(pivot.high > 0)) return p;
      double *ch = &column[2 * (p - a) * J], *cl = ch + J;
      for (int64_t i = p + 1; i < J; ++i) {
        Two c{high[i * J + p], low[i * J + p]}, ratio = c / pivot;
        ch[i] = c.high, cl[i] = c.low;
        high[i * J + p] = ratio.high, low[i * J + p] = ratio.low;
        int64_t most = std::min(i + 1, b) - (p + 1);
        subtract_multiple(&high[i * J + p + 1], &low[i * J + p + 1], ratio, ch + p + 1, cl + p + 1, most);
      }
    }
    over_rows(J - b, (J - b) * (J - b) > 1 << 16 ? threads : 1, [=, &column](int64_t first, int64_t last) {
      for (int64_t i = b + first; i < b + last; ++i)
        for (int64_t p = a; p < b; ++p) {
          const double *ch = &column[2 * (p - a) * J], *cl = ch + J;
          Two ratio{high[i * J + p], low[i * J + p]};
          subtract_multiple(&high[i * J + b], &low[i * J + b], ratio, ch + b, cl + b, i + 1 - b);
        }
    });
  }
  return n;
}

// B ← A⁻¹B of right-hand sides in rows, for A = L D Lᵀ
void twofold_solve(In<double, 3> A, Out<double, 3> B) {
  int64_t J = A.shape(1), K = B.shape(2);
  const double *high = A.data(), *low = high + J * J;
  double *xh = B.data(), *xl = xh + J * K;
  nb::gil_scoped_release release;
  auto less = [=](int64_t i, int64_t k, int64_t at) {  // row i -= L_at row k
    subtract_multiple(xh + i * K, xl + i * K, {high[at], low[at]}, xh + k * K, xl + k * K, K);
  };
  for (int64_t i = 0; i < J; ++i)
    for (int64_t k = 0; k < i; ++k) less(i, k, i * J + k);
  for (int64_t i = 0; i < J; ++i)
    for (int64_t k = 0; k < K; ++k) {
      Two z = Two{xh[i * K + k], xl[i * K + k]} / Two{high[i * J + i], low[i * J + i]};
      xh[i * K + k] = z.high, xl[i * K + k] = z.low;
    }
  for (int64_t i = J - 1; i >= 0; --i)
    for (int64_t k = 0; k < i; ++k) less(k, i, i * J + k);
}

}  // namespace

void bind_solve(nb::module_ &m) {
  m.def("advance", &advance, nb::arg("X").noconvert(), nb::arg(), nb::arg(), nb::arg());
  m.def("add_multiple", &add_multiple, nb::arg("total").noconvert(), nb::arg(), nb::arg());
  m.def("subtract_product", &subtract_product, nb::arg("R").noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("leading", &leading, nb::arg(), nb::arg(), nb::arg(), nb::arg("V").noconvert(), nb::arg("x").noconvert());
  m.def("decide", &decide, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg("Z").noconvert());
  m.def("matrix", &matrix, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg("A").noconvert(),
        nb::arg("e").noconvert(), nb::arg("there").noconvert());
  m.def("twofold_factor", &twofold_factor, nb::arg("A").noconvert(), nb::arg(), nb::arg());
  m.def("twofold_solve", &twofold_solve, nb::arg(), nb::arg("B").noconvert());
}
