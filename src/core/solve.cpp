// The exact solve: what A Z = Q needs beyond float64, A = w S + diag(r) in whole numbers.
//
// The solution is X 2^-E + A⁻¹R 2^-E with X, R whole. Digits d of the next bits go into both,
//
//     X ← 2^s X + d,     R ← 2^s R - w S d - r d
//
// S has limbs of 64 bits; w ≥ 0 and r ≥ 0 have as many as it takes. R and X are kept modulo
// 2^(64 limbs): whoever calls gives them limbs enough.
#include "core.h"

// a product and a sum in one step, where neither rounds
#if defined(__GNUC__) && !defined(__clang__)
#define EXACT __attribute__((optimize("fp-contract=fast")))
#else
#define EXACT
#endif

namespace {

// high + low, of about 106 bits (Dekker 1971, Knuth)
struct Two {
  double high, low;
};

inline Two tidy(double a, double b) { return {a + b, b - (a + b - a)}; }

inline Two sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

// One number of an array with limbs in the first axis.
void load(uint64_t *v, const uint64_t *from, int64_t step, int n) {
  for (int i = 0; i < n; ++i) v[i] = from[i * step];
}

// v += a b 2^(64 at), a of two's complement, b ≥ 0: carries stay below 2^64, since
// (2^64 - 1)² + 2 (2^64 - 1) = 2^128 - 1.
void add_product(uint64_t *v, int n, const uint64_t *a, int na, uint64_t b, int at) {
  u128 carry = 0;
  for (int i = at; i < n; ++i, carry >>= 64) {
    carry += u128(i - at < na ? a[i - at] : uint64_t(int64_t(a[na - 1]) >> 63)) * b + v[i];
    v[i] = uint64_t(carry);
  }
}

void negate(uint64_t *v, int n) {
  uint64_t carry = 1;
  for (int i = 0; i < n; ++i) v[i] = ~v[i] + carry, carry = carry && !v[i];
}

bool make_positive(uint64_t *v, int n) {
  if (!(v[n - 1] >> 63)) return false;
  return negate(v, n), true;
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

}  // namespace

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

namespace {

// X ← 2^up X + r D for each column's `up`, r ≥ 0, modulo 2^(64 limbs).
void advance(Out<uint64_t, 3> X, In<int64_t, 1> up, In<uint64_t, 3> D, In<uint64_t, 1> r) {
  const int n = X.shape(0), nd = D.shape(0), nr = r.shape(0);
  const int64_t K = X.shape(2), step = X.shape(1) * K;
  std::vector<uint64_t> v(n), d(nd);
  for (int64_t at = 0; at < step; ++at) {
    load(v.data(), X.data() + at, step, n);
    load(d.data(), D.data() + at, step, nd);
    shift_left(v.data(), n, up.data()[at % K]);
    for (int i = 0; i < nr; ++i) add_product(v.data(), n, d.data(), nd, r.data()[i], i);
    for (int i = 0; i < n; ++i) X.data()[i * step + at] = v[i];
  }
}

// The first digits d = round(2^s c) of c_jk = y_jk 2^(x_k - e_j), with `most` bits for the largest of a column
// where s ≥ 0 allows it, and d_b - Σ m_j d_j of the last, b. tops are places of the largest c, and of the
// largest y 2^x. False where a number is not finite, or its digits are beyond 2^58: with |m| ≤ 2^51 and up to
// 2^16 rows the sum is below 2^127.
bool digits(In<double, 2> y, In<int64_t, 1> e, In<int64_t, 1> m, In<int64_t, 1> x, int most,
            Out<int64_t, 2> tops, Out<int64_t, 1> s, Out<int64_t, 2> d, Out<uint64_t, 2> last) {
  const int64_t J = y.shape(0), K = y.shape(1);
  for (int64_t k = 0; k < K; ++k) {
    int64_t &own = tops.data()[k] = INT32_MIN, &all = tops.data()[K + k] = INT32_MIN;
    for (int64_t j = 0; j < J; ++j) {
      int place;
      const double c = y.data()[j * K + k];
      if (!std::isfinite(c)) return false;
      if (std::frexp(c, &place) == 0.0) continue;
      own = std::max(own, place - e.data()[j] + x.data()[k]), all = std::max(all, place + x.data()[k]);
    }
    if (own > 58) return false;
    const int64_t up = s.data()[k] = own == INT32_MIN ? most : std::max<int64_t>(most - own, 0);
    i128 total = 0;
    for (int64_t j = 0; j < J; ++j) {
      const int place = int(std::max<int64_t>(x.data()[k] + up - e.data()[j], -2000));
      d.data()[j * K + k] = int64_t(std::nearbyint(std::ldexp(y.data()[j * K + k], place)));
      total -= i128(m.data()[j]) * d.data()[j * K + k];
    }
    total += d.data()[(J - 1) * K + k];
    last.data()[k] = uint64_t(total), last.data()[K + k] = uint64_t(u128(total) >> 64);
  }
  return true;
}

typedef double Eight __attribute__((vector_size(64)));
const int BITS = 24, TILE = 8, RUN = 128;  // of a digit; rows and columns that are multiplied together

// How many digits numbers of L limbs have.
int digits_of(int64_t L) { return int(64 * L / BITS) + 1; }

// Digits p of numbers x = Σ_p 2^(24 p) digit_p, with L limbs that are `step` apart: with h(s) = x 2^-s
// rounded, these are h(24 p) - 2^24 h(24 p + 24), at most 2^23 in size. Whether any is not 0.
WIDEST bool cut(const uint64_t *x, int64_t step, int64_t L, int p, int64_t n, double *digits) {
  const int64_t at = BITS * p - 1, word = at >> 6, bits = at & 63;  // one bit more decides the rounding
  const uint64_t *low = x + std::max<int64_t>(word, 0) * step, *high = x + std::min(word + 1, L - 1) * step;
  const uint64_t has_low = -uint64_t(word >= 0), past = word + 1 < L ? 0 : 63;  // beyond limbs is their sign
  int64_t any = 0;
  for (int64_t j = 0; j < n; ++j) {
    const uint64_t above = past ? uint64_t(int64_t(high[j]) >> 63) : high[j];
    const uint64_t field = (low[j] & has_low) >> bits | above << 1 << (63 - bits);
    const int64_t digit = ((int64_t(field << (63 - BITS)) >> (63 - BITS)) + 1) >> 1;
    digits[j] = double(digit);
    any |= digit;
  }
  return any;
}

// Σ_j a_rj x_j of n ≤ 128 digits, for eight rows a and eight columns of x: no sum passes 2^53, so float64
// has no rounding errors, in whatever order it adds.
WIDEST EXACT void products(const double *a, const double *x, int64_t n, double *out) {
  Eight sums[TILE] = {}, right;
  for (int64_t j = 0; j < n; ++j) {
    std::memcpy(&right, x + 8 * j, sizeof right);
    for (int r = 0; r < TILE; ++r) sums[r] += a[RUN * r + j] * right;
  }
  std::memcpy(out, sums, sizeof sums);
}

// Places of the first and the last digit of numbers that is not 0: of a tile of rows.
void digits_in(const Rows &S, int64_t tile, int64_t rows, int &first, int &last) {
  const int64_t L = S.shape(0), J = S.shape(2);
  uint64_t any[2] = {}, large[2] = {};
  for (int64_t r = tile; r < tile + rows; ++r) {
    const uint64_t *low = S.data() + r * S.stride(1), *high = low + (L - 1) * S.stride(0);
    for (int64_t j = 0; j < J; ++j) {
      const uint64_t sign = uint64_t(int64_t(high[j]) >> 63);
      any[0] |= low[j], any[1] |= high[j], large[0] |= low[j] ^ sign, large[1] |= high[j] ^ sign;
    }
  }
  first = L > 2 || !any[0] ? 0 : __builtin_ctzll(any[0]) / BITS;
  last = digits_of(L) - 1;
  if (L <= 2) last = std::min<int>(last, bit_length(large, L) / BITS);
}

// R ← 2^up R - w S D - r D for each column's `up` and each row's r ≥ 0, for up to 2^16 columns of S, w ≥ 0;
// S is given other numbers `last` than the last row of D, if there are any. Numbers are cut into digits, and
// digits of S times digits of D summed up: at most 2^62. All of one place are at most 2^69 (no more than 2^7
// pairs share one), and of three places below 2^118.
void residual(Out<uint64_t, 3> R, In<int64_t, 1> up, Rows S, In<uint64_t, 3> D, In<uint64_t, 2> last,
              In<uint64_t, 1> w, In<uint64_t, 2> r, int threads) {
  const int n = R.shape(0), nw = w.shape(0), nr = r.shape(0), nd = D.shape(0), P = digits_of(S.shape(0));
  const int64_t L = S.shape(0), I = S.shape(1), J = S.shape(2), K = D.shape(2), step = I * K;
  const bool other = last.shape(0) > 0;
  std::vector<std::vector<double>> some;  // digits of D that are not all 0: their columns
  std::vector<int> places;
  std::vector<double> row(J * K);
  for (int q = 0; q < digits_of(nd); ++q)
    if (cut(D.data(), J * K, nd, q, (J - other) * K, row.data())) some.push_back(row), places.push_back(q);
  const int64_t Q = places.size(), lanes = (Q * K + 7) / 8 * 8;
  std::vector<double> right(lanes * J);  // eight columns side by side
  for (int64_t q = 0; q < Q; ++q)
    for (int64_t j = 0; j < J; ++j)
      for (int64_t k = 0; k < K; ++k) right[(q * K + k) / 8 * 8 * J + 8 * j + (q * K + k) % 8] = some[q][j * K + k];
  over_rows((I + TILE - 1) / TILE, threads, [&](int64_t begin, int64_t end) {
    std::vector<double> a(TILE * RUN), part(8 * TILE);
    std::vector<int64_t> sums(P * TILE * lanes);
    std::vector<uint64_t> v(n), t(n), d(n), own(L);
    const auto subtract = [&](std::vector<uint64_t> &from, const uint64_t *x, int64_t apart, int nx, uint64_t b, int at) {
      nx = std::min(nx, n);
      load(d.data(), x, apart, nx);  // from -= x b 2^(64 at)
      std::fill(d.begin() + nx, d.end(), uint64_t(int64_t(d[nx - 1]) >> 63));
      negate(d.data(), n);
      add_product(from.data(), n, d.data(), n, b, at);
    };
    for (int64_t tile = begin * TILE; tile < std::min(I, end * TILE); tile += TILE) {
      const int64_t rows = std::min<int64_t>(TILE, I - tile);
      int low, high;
      digits_in(S, tile, rows, low, high);
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t j = 0; j < J; j += RUN)
        for (int p = low; p <= high; ++p) {
          const int64_t m = std::min<int64_t>(RUN, J - j);
          for (int64_t i = 0; i < rows; ++i)
            cut(S.data() + (tile + i) * S.stride(1) + j, S.stride(0), L, p, m, &a[i * RUN]);
          for (int64_t l = 0; l < lanes; l += 8) {
            products(a.data(), &right[l * J + 8 * j], m, part.data());
            for (int i = 0; i < TILE; ++i)
              for (int k = 0; k < 8; ++k) sums[(p * TILE + i) * lanes + l + k] += int64_t(part[8 * i + k]);
          }
        }
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < K; ++k) {
          std::fill(t.begin(), t.end(), 0);
          for (int u = 0; Q && u <= high + places.back(); u += 3) {
            i128 three = 0;
            for (int p = low; p <= high; ++p)
              for (int64_t q = 0; q < Q; ++q)
                if (const int above = p + places[q] - u; above >= 0 && above < 3)
                  three -= i128(sums[(p * TILE + i) * lanes + q * K + k]) * (int64_t(1) << BITS * above);
            const uint64_t two[2] = {uint64_t(three), uint64_t(u128(three) >> 64)};
            if (three) add_product(t.data(), n, two, 2, uint64_t(1) << BITS * u % 64, BITS * u / 64);
          }
          if (other) {
            load(own.data(), S.data() + (tile + i) * S.stride(1) + J - 1, S.stride(0), L);
            const bool negative = make_positive(own.data(), L);
            if (negative) negate(t.data(), n);
            for (int l = 0; l < L; ++l) subtract(t, last.data() + k, K, last.shape(0), own[l], l);
            if (negative) negate(t.data(), n);
          }
          uint64_t *out = R.data() + (tile + i) * K + k;
          load(v.data(), out, step, n);
          shift_left(v.data(), n, up.data()[k]);
          for (int l = 0; l < nw; ++l) add_product(v.data(), n, t.data(), n, w.data()[l], l);
          for (int l = 0; l < nr; ++l)
            if (const uint64_t b = r.data()[l * I + tile + i]) subtract(v, D.data() + (tile + i) * K + k, J * K, nd, b, l);
          for (int l = 0; l < n; ++l) out[l * step] = v[l];
        }
    }
  });
}

// The first 106 bits of v as two floats below 1, the first the nearest, and their length.
int64_t leading_bits(uint64_t *v, int n, Two &both) {
  const double sign = make_positive(v, n) ? -0x1p-53 : 0x1p-53;
  int64_t length = bit_length(v, n);
  double first = double(bits_from(v, n, length - 64) >> 11);
  double second = double(bits_from(v, n, length - 117) >> 11) * 0x1p-53, nearest = first + second;
  both = {sign * nearest, sign * (second - (nearest - first))};
  return length;
}

// v -= m a, for a with limbs `step` apart.
void subtract_multiple(std::vector<uint64_t> &v, int64_t m, const uint64_t *a, int64_t step,
                       std::vector<uint64_t> &spare) {
  if (!m) return;
  const int n = int(v.size());
  load(spare.data(), a, step, n);
  if (m > 0) negate(spare.data(), n);
  add_product(v.data(), n, spare.data(), n, m > 0 ? m : -m, 0);
}

// The float64 nearest to x: below 2^97 both of its parts are floats, and their sum is rounded once.
inline double rounded(i128 x) {
  const int64_t high = int64_t(x >> 44);
  if (x >> 96 != x >> 127) return double(x);
  return double(high) * 0x1p44 + double(int64_t(x) & ((int64_t(1) << 44) - 1));
}

// R'_j = R_j - m_j R_b, b the last row, in two floats V with V[0] the nearest: R'_j = V 2^(x_k + e_j),
// x_k such that no V is above 1.
void leading(In<uint64_t, 3> R, In<int64_t, 1> m, In<int64_t, 1> e, Out<double, 3> V, Out<int64_t, 1> x) {
  const int n = R.shape(0);
  const int64_t J = R.shape(1), K = R.shape(2), step = J * K;
  double *high = V.data(), *low = high + step;
  std::vector<uint64_t> v(n), spare(n);
  std::vector<int64_t> lengths(J);
  for (int64_t k = 0; k < K; ++k) {
    int64_t most = INT64_MIN;
    for (int64_t j = 0; j < J; ++j) {
      load(v.data(), R.data() + j * K + k, step, n);
      subtract_multiple(v, m.data()[j], R.data() + (J - 1) * K + k, step, spare);
      Two both;
      const int64_t length = leading_bits(v.data(), n, both);
      lengths[j] = length - e.data()[j];
      high[j * K + k] = both.high, low[j * K + k] = both.low;
      if (length) most = std::max(most, lengths[j]);
    }
    x.data()[k] = most == INT64_MIN ? 0 : most;
    for (int64_t j = 0; j < J; ++j) {
      const int down = int(std::max<int64_t>(lengths[j] - x.data()[k], -4000));
      high[j * K + k] = std::ldexp(high[j * K + k], down);
      low[j * K + k] = std::ldexp(low[j * K + k], down);
    }
  }
}

// Z = the float64 nearest to all that is within `bound` 2^places of X, times 2^-E, or NaN where there are
// several. Rounding is monotone, so it is enough to look at both ends. |X| is below a quarter of what the
// limbs hold; a bound that is not says nothing.
void decide(In<uint64_t, 3> X, In<double, 2> bound, In<int64_t, 2> places, In<int64_t, 1> E, Out<double, 2> Z) {
  const int n = X.shape(0);
  const int64_t K = X.shape(2), step = X.shape(1) * K;
  std::vector<uint64_t> low(n), high(n), off(n);
  for (int64_t at = 0; at < step; ++at) {
    int length;
    const uint64_t m = uint64_t(std::ldexp(std::frexp(bound.data()[at], &length), 53));
    const int64_t bits = m ? length + places.data()[at] : 0, drop = std::min<int64_t>(53 - bits, 60);
    Z.data()[at] = std::nan("");
    if (bits > 64 * n - 2) continue;
    std::fill(off.begin(), off.end(), 0);
    off[0] = drop > 0 ? (m + (uint64_t(1) << drop) - 1) >> drop : m;  // rounded up
    if (drop < 0) shift_left(off.data(), n, -drop);
    load(high.data(), X.data() + at, step, n);
    load(low.data(), X.data() + at, step, n);
    add_product(high.data(), n, off.data(), n, 1, 0);
    negate(off.data(), n);
    add_product(low.data(), n, off.data(), n, 1, 0);
    const int64_t down = E.data()[at % K];
    const double a = nearest(low.data(), n, down), b = nearest(high.data(), n, down);
    if (a == b) Z.data()[at] = a;
  }
}

// S_j - m t_j - s m_j, times scales: of one row.
WIDEST void one_limb(const uint64_t *S, const uint64_t *t, uint64_t s, const int64_t *shift, int64_t m, double left,
                     const double *scale, int64_t J, double *row) {
  for (int64_t j = 0; j < J; ++j) row[j] = double(int64_t(S[j] - m * t[j] - s * shift[j])) * left * scale[j];
}

// A = S' 2^-unit + diag(near), scaled to 2^-e A 2^-e with a diagonal near one, in one float64 or two, and
// S'_ij = S_ij - m_i t_j - s_i m_j: the sums of features less m. S' is made modulo 2^(64 limbs), of which
// it leaves the highest bit free; s, t have as many limbs. `there` is where S'_jj is not 0. An A of fewer
// columns than J is in LAPACK's rectangular full packed format (transr T, uplo L): half of the memory.
void matrix(Rows S, In<int64_t, 1> m, In<uint64_t, 2> s, In<uint64_t, 2> t, In<double, 1> near, int unit,
            Out<double, 3> A, Out<int64_t, 1> e, Out<bool, 1> there) {
  const int L = S.shape(0), parts = A.shape(0);
  const int64_t J = S.shape(1), *shift = m.data();
  const double grain = std::ldexp(1.0, -unit);
  const Numbers S_(S), s_(s), t_(t);
  std::vector<uint64_t> v(L), spare(L);
  std::vector<double> scale(J);
  auto entry = [&](int64_t i, int64_t j) {
    const int64_t at = i * S.stride(1) + j;
    if (L <= 2 && parts == 1)
      return Two{rounded(u128(S_[at]) - u128(shift[i]) * u128(t_[j]) - u128(s_[i]) * u128(shift[j])), 0};
    load(v.data(), S.data() + at, S.stride(0), L);
    subtract_multiple(v, shift[i], t.data() + j, J, spare);
    subtract_multiple(v, shift[j], s.data() + i, J, spare);
    Two both;
    const int length = leading_bits(v.data(), L, both);
    return Two{std::ldexp(both.high, length), std::ldexp(both.low, length)};
  };
  for (int64_t j = 0; j < J; ++j) {
    const double own = entry(j, j).high * grain;
    there.data()[j] = own != 0.0;
    int exponent;
    std::frexp(own + near.data()[j], &exponent);
    e.data()[j] = exponent >> 1;
    scale[j] = std::ldexp(1.0, -(exponent >> 1));
  }
  const int64_t width = A.shape(2), even = J % 2 == 0;
  std::vector<double> packed(width < J ? J : 0);
  for (int64_t i = 0; i < J; ++i) {
    const bool half = width < J;
    double *row = half ? packed.data() : A.data() + i * J, *rest = A.data() + (J + i) * J;
    const double left = grain * scale[i];
    if (L == 1 && parts == 1)
      one_limb(S_.low + i * S.stride(1), t_.low, s_.low[i], shift, shift[i], left, scale.data(), half ? i + 1 : J, row);
    for (int64_t j = 0; j <= i && (L > 1 || parts > 1); ++j) {  // the other triangle is the same
      const Two x = entry(i, j);
      row[j] = x.high * left * scale[j];
      if (!half) A.data()[j * J + i] = row[j];
      if (parts == 2) rest[j] = A.data()[J * J + j * J + i] = x.low * left * scale[j];
    }
    const Two own = sum(row[i], near.data()[i] * scale[i] * scale[i]);
    row[i] = own.high;
    if (parts == 2) rest[i] += own.low;
    if (half) std::copy_n(row, std::min(i + 1, width), A.data() + (i + even) * width);
    for (int64_t j = width; j <= i; ++j) A.data()[(j - width) * width + i - J / 2] = row[j];
  }
}

// --- twofold arithmetic ---------------------------------------------------------------------------

inline Two operator*(Two a, Two b) {
  const double p = a.high * b.high, c = 134217729.0 * a.high, d = 134217729.0 * b.high;  // 2^27 + 1
  const double ah = c - (c - a.high), al = a.high - ah, bh = d - (d - b.high), bl = b.high - bh;
  return tidy(p, (((ah * bh - p) + ah * bl + al * bh) + al * bl) + (a.high * b.low + a.low * b.high));
}

inline Two operator-(Two a, Two b) {
  Two s = sum(a.high, -b.high), t = sum(a.low, -b.low);
  s = tidy(s.high, s.low + t.high);
  return tidy(s.high, s.low + t.low);
}


inline Two operator/(Two a, Two b) {
  const double first = a.high / b.high;
  Two rest = a - b * Two{first, 0.0};
  const double second = rest.high / b.high;
  rest = rest - b * Two{second, 0.0};
  return tidy(first, second) - Two{-rest.high / b.high, -0.0};
}

// x -= a y, number by number
WIDEST void subtract_multiple(double *__restrict xh, double *__restrict xl, Two a, const double *__restrict yh,
                              const double *__restrict yl, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    Two z = Two{xh[i], xl[i]} - a * Two{yh[i], yl[i]};
    xh[i] = z.high, xl[i] = z.low;
  }
}

// The first n steps of A = L D Lᵀ in the lower triangle; what is left is the Schur complement.
// Returns the first pivot that is not positive, or n. Rows are updated by a block of columns at a
// time, in the order in which one column after the other would be taken.
int64_t twofold_factor(Out<double, 3> A, int64_t n, int threads) {
  constexpr int64_t block = 32;
  int64_t J = A.shape(1);
  double *high = A.data(), *low = high + J * J;
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
  auto less = [=](int64_t i, int64_t k, int64_t at) {  // row i -= L_at row k
    subtract_multiple(xh + i * K, xl + i * K, {high[at], low[at]}, xh + k * K, xl + k * K, K);
  };
  for (int64_t i = 0; i < J; ++i)
    for (int64_t k = 0; k < i; ++k) less(i, k, i * J + k);
  for (int64_t i = 0; i < J; ++i)
    for (int64_t k = 0; k < K; ++k) {
      const Two z = Two{xh[i * K + k], xl[i * K + k]} / Two{high[i * J + i], low[i * J + i]};
      xh[i * K + k] = z.high, xl[i * K + k] = z.low;
    }
  for (int64_t i = J - 1; i >= 0; --i)
    for (int64_t k = 0; k < i; ++k) less(k, i, i * J + k);
}

typedef double Lanes __attribute__((vector_size(64), aligned(8)));  // eight rows side by side
const int BAND = 4;                                                 // rows of A at a time

// t_i = Σ_j≤i A_ij x_j, each from the first to the last: the same on every machine.
INLINE void lower_times(const double *A, const Lanes *x, int64_t D, Lanes *t) {
  for (int64_t i = 0; i < D; i += BAND) {
    const int rows = int(std::min<int64_t>(BAND, D - i));
    const double *a[BAND];
    for (int r = 0; r < BAND; ++r) a[r] = A + (i + std::min(r, rows - 1)) * D;
    Lanes sums[BAND] = {};
    for (int64_t j = 0; j <= i; ++j)
      for (int r = 0; r < BAND; ++r) sums[r] += x[j] * a[r][j];
    for (int r = 0; r < rows; ++r) {
      for (int64_t j = i + 1; j <= i + r; ++j) sums[r] += x[j] * a[r][j];
      t[i + r] = sums[r];
    }
  }
}

// ‖A_c (z - M_c)‖² of eight columns z and each class c, A_c lower triangles; ‖A z - M_c‖² where there is one A.
WIDEST void squared_distances(const Lanes *z, const double *A, const double *M, bool shared, int64_t D, int64_t K,
                              Lanes *moved, Lanes *t, Lanes *out) {
  if (shared) lower_times(A, z, D, t);
  for (int64_t c = 0; c < K; ++c, M += D) {
    for (int64_t j = 0; j < D && !shared; ++j) moved[j] = z[j] - M[j];
    if (!shared) lower_times(A + c * D * D, moved, D, t);
    Lanes total = {};
    for (int64_t i = 0; i < D; ++i) {
      const Lanes own = shared ? t[i] - M[i] : t[i];
      total += own * own;
    }
    out[c] = total;
  }
}

void distances(nb::ndarray<const double, nb::ndim<2>, nb::device::cpu> z, In<double, 3> A, In<double, 2> M,
               Out<double, 2> out, int threads) {
  const int64_t D = z.shape(0), n = z.shape(1), K = M.shape(0);
  over_rows((n + 7) / 8, threads, [&](int64_t begin, int64_t end) {
    std::vector<double> memory(8 * (3 * D + K));
    Lanes *x = (Lanes *)memory.data(), *t = x + D, *moved = t + D, *found = moved + D;
    for (int64_t first = 8 * begin; first < std::min(n, 8 * end); first += 8) {
      const int64_t rows = std::min<int64_t>(8, n - first);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < D; ++j) memory[8 * j + r] = z.data()[j * z.stride(0) + (first + r) * z.stride(1)];
      squared_distances(x, A.data(), M.data(), A.shape(0) == 1, D, K, moved, t, found);
      for (int64_t c = 0; c < K; ++c) std::memcpy(out.data() + c * n + first, found + c, 8 * rows);
    }
  });
}

}  // namespace

void bind_solve(nb::module_ &m) {
  def(m, "advance", advance), def(m, "digits", digits), def(m, "residual", residual), def(m, "matrix", matrix);
  def(m, "leading", leading), def(m, "decide", decide);
  def(m, "twofold_factor", twofold_factor), def(m, "twofold_solve", twofold_solve);
  def(m, "distances", distances);
}
