// Sums of products of codes, and sums of sums. A sum is a whole number below 2^127 in size, in one
// limb where that and its negative fit, else in two.
#include "core.h"

namespace {

const double P = 1048573.0;              // a prime below 2^20
const double MAGIC = 6755399441055744.0; // 1.5 2^52: adding it rounds to a whole number

using Flat = In<uint64_t, 2>;    // limbs x numbers
using Cube = In<uint64_t, 3>;    // limbs x rows x columns
using OutCube = Out<uint64_t, 3>;
using Codes = In<double, 2>;     // whole numbers
using Weights = std::optional<In<double, 1>>;
using Indices = In<int64_t, 1>;

// --- sums of sums ------------------------------------------------------------------------------

// f(0) in as many bits as sums of so many limbs are added in, 64 or 128.
template <class F> auto modulo(bool one, F f) { return one ? f(uint64_t(0)) : f(u128(0)); }

// out = a + b, or a - b = a + ~b + 1; false, and out means nothing, where a number does not fit. A sum
// has wrapped if its sign is not that of both terms; and of numbers of 64 bits z & -z is negative only
// for z = -2^63, whose negative does not fit.
WIDEST bool one_limb(const uint64_t *a, const uint64_t *b, bool minus, int64_t n, uint64_t *out) {
  uint64_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t y = b[i] ^ -uint64_t(minus), z = a[i] + y + minus;
    bad |= ((a[i] ^ z) & (y ^ z)) | (z & -z);
    out[i] = z;
  }
  return !(bad >> 63);
}

bool combined(Flat a, Flat b, bool minus, Out<uint64_t, 2> out) {
  const Numbers A(a), B(b);
  const Places C(out);
  const int64_t n = a.shape(1);
  if (!A.high && !B.high && !C.high) return one_limb(A.low, B.low, minus, n, C.low);
  const u128 flip = minus ? ~u128(0) : 0;
  for (int64_t i = 0; i < n; ++i) {
    const u128 x = A[i], y = u128(B[i]) ^ flip, z = x + y + minus;
    if (!C.put(i, z) || i128((x ^ z) & (y ^ z)) < 0) return false;
  }
  return true;
}

// out = a 2^bits, rounded down; false where a number does not fit.
bool shifted(Flat a, int64_t bits, Out<uint64_t, 2> out) {
  const Numbers A(a);
  const Places C(out);
  const int64_t up = std::clamp<int64_t>(bits, 0, 127), down = std::clamp<int64_t>(-bits, 0, 127);
  for (int64_t i = 0; i < int64_t(a.shape(1)); ++i) {
    const i128 x = A[i], y = down ? x >> down : i128(u128(x) << up);
    if ((up && y >> up != x) || !C.put(i, u128(y))) return false;
  }
  return true;
}

// The float64 nearest to each number, ties to even.
void near(Flat a, Out<double, 1> out) {
  const Numbers A(a);
  for (int64_t i = 0; i < int64_t(a.shape(1)); ++i) out.data()[i] = double(A[i]);
}

// The sums of features that are counted from whole numbers m, where the last feature is 1:
//
//     S'_jk = S_jk - m_j t_k - s_j m_k,   s = S_b.,   t = s - n m,   n = S_bb
//
// modulo 2^128; no S'_jk is larger than the largest S'_jj <= S_jj + n/4. False where one does not fit.
bool centred(Cube S, Indices m, OutCube out) {
  const Numbers A(S);
  const Places C(out);
  const int64_t J = S.shape(1), last = (J - 1) * J;
  std::vector<u128> s(J), t(J), M(J);
  for (int64_t j = 0; j < J; ++j) {
    s[j] = u128(A[last + j]);
    M[j] = u128(i128(m.data()[j]));
    t[j] = s[j] - u128(A[last + J - 1]) * M[j];
  }
  for (int64_t j = 0; j < J; ++j)
    for (int64_t k = 0; k < J; ++k)
      if (!C.put(j * J + k, u128(A[j * J + k]) - M[j] * t[k] - s[j] * M[k])) return false;
  return true;
}

// --- products ----------------------------------------------------------------------------------

// A weight; 0 for those so large that all numbers of their row are 0, where sums are in range.
template <class T> T whole(double w) { return w < (sizeof(T) == 8 ? 0x1p62 : 0x1p126) ? T(w) : 0; }

// Of each column v_n = w_n z_n: the zeros that end all its numbers in binary (a column of zeros has
// 127 of them), the bits of the largest, and sum v_n^2 and sum v_n z_n in float64, to 1e-10. Where a
// number is beyond 2^126 these are infinite.
void survey(Codes Z, int64_t J, Weights w, Out<int64_t, 2> found, Out<double, 2> energy) {
  std::vector<u128> seen(J, 0);
  double *E = energy.data(), *own = E + J;
  std::fill(E, E + 2 * J, 0.0);
  for (int64_t n = 0; n < int64_t(Z.shape(0)); ++n) {
    const double *z = Z.data() + n * Z.shape(1);
    const double weight = w ? w->data()[n] : 1.0;
    for (int64_t j = 0; j < J; ++j) {
      const double v = weight * z[j], size = std::fabs(v);
      E[j] += size < 0x1p126 ? v * v : INFINITY;
      own[j] += size < 0x1p126 ? v * z[j] : INFINITY;
      if (size < 0x1p62 && weight < 0x1p62) seen[j] |= uint64_t(weight) * uint64_t(std::fabs(z[j]));
      else if (size < 0x1p126 && z[j] != 0.0) seen[j] |= u128(weight) * uint64_t(std::fabs(z[j]));
    }
  }
  for (int64_t j = 0; j < J; ++j) {
    int64_t &zeros = found.data()[j] = 0, &bits = found.data()[J + j] = 0;
    while (bits < 127 && seen[j] >> bits) ++bits;
    while (zeros < 127 && !(seen[j] >> zeros & 1)) ++zeros;
  }
}

// Parts of columns: with h(s) = v 2^-s rounded, part k of column j(k) is h(s_k) if it is the last
// of its column, else h(s_k) - 2^b h(s_k + b), between -2^(b-1) and 2^(b-1). The first s_k of a
// column divides out zeros only, so that v = sum_k 2^s_k part_k exactly. Columns beyond are zeros.
// Numbers have at most so many bits: where these are few, 64 are enough.
void cut(Codes Z, Weights w, Indices columns, Indices shifts, Indices last, int64_t b, int64_t bits,
         Out<double, 2> parts) {
  modulo(bits <= 61, [&](auto zero) {
    using T = std::conditional_t<sizeof(zero) == 8, int64_t, i128>;
    const auto rounded = [](T v, int64_t s) { return (v + (T(1) << s >> 1)) >> s; };
    for (int64_t n = 0; n < int64_t(Z.shape(0)); ++n) {
      const double *z = Z.data() + n * Z.shape(1);
      double *out = parts.data() + n * parts.shape(1);
      const T weight = w ? whole<T>(w->data()[n]) : 1;
      std::fill(out, out + parts.shape(1), 0.0);
      for (int64_t k = 0; k < int64_t(columns.shape(0)); ++k) {
        const int64_t s = shifts.data()[k];
        const T v = weight * T(int64_t(z[columns.data()[k]]));
        const T above = last.data()[k] ? 0 : rounded(v, s + b) * (T(1) << b);
        out[k] = double(int64_t(rounded(v, s) - above));
      }
    }
  });
}

// Add products of parts to sums, modulo 2^64 or 2^128:
//
//     sum_ij += 2^(s_k + s_l) product_kl    over all parts k of column i and l of column j
//
// below the diagonal, i >= j. Of a symmetric product there is the lower triangle only: product_lk is
// added where product_kl is.
void place(Codes product, Indices rows, Indices up, Indices columns, Indices across, bool half, OutCube sums) {
  const Places S(sums);
  const int64_t J = sums.shape(1), *column = columns.data();
  modulo(!S.high, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t k = 0; k < int64_t(rows.shape(0)); ++k) {
      const double *own = product.data() + k * product.shape(1);
      const int64_t i = rows.data()[k], n = half ? k + 1 : columns.shape(0);
      for (int64_t l = 0; l < n; ++l) {
        const int64_t j = column[l], bits = up.data()[k] + across.data()[l] + (half && i == j && k != l);
        if ((half || i >= j) && bits < int64_t(8 * sizeof(T)))
          S.add(std::max(i, j) * J + std::min(i, j), T(int64_t(own[l])) << bits);
      }
    }
  });
}

// Add w z_i z_j of sparse rows (CSR) to sums, i >= j, modulo 2^64 or 2^128.
void sparse_gram(Indices starts, Indices columns, In<double, 1> codes, Weights w, OutCube sums) {
  const Places S(sums);
  const int64_t J = sums.shape(1), *c = columns.data(), *start = starts.data();
  modulo(!S.high, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t n = 0; n + 1 < int64_t(starts.shape(0)); ++n) {
      const T weight = w ? whole<T>(w->data()[n]) : 1;
      for (int64_t k = start[n]; k < start[n + 1]; ++k) {
        const T left = weight * T(int64_t(codes.data()[k]));
        for (int64_t l = start[n]; l <= k; ++l)
          S.add(std::max(c[k], c[l]) * J + std::min(c[k], c[l]), left * T(int64_t(codes.data()[l])));
      }
    }
  });
}

// Add w z_i z_j of each row to the sums of its group, modulo 2^64; whether all of these were below 2^62
// before. What they cannot hold, numbers beyond 2^53 and weights beyond 2^62, counts as 0.
WIDEST bool add_rows(Codes Z, Weights w, Indices group, Out<int64_t, 3> sums) {
  const int64_t J = sums.shape(1);
  std::vector<uint64_t> z(J);
  uint64_t large = 0;
  for (int64_t n = 0; n < int64_t(Z.shape(0)); ++n) {
    const double *from = Z.data() + n * J, weight = w ? w->data()[n] : 1.0;
    for (int64_t j = 0; j < J; ++j) z[j] = std::fabs(from[j]) <= 0x1p53 ? uint64_t(int64_t(from[j])) : 0;
    uint64_t *own = reinterpret_cast<uint64_t *>(sums.data()) + group.data()[n] * J * J;
    for (int64_t i = 0; i < J; ++i) {
      const uint64_t left = std::fabs(weight) < 0x1p62 ? uint64_t(int64_t(weight)) * z[i] : 0;
      for (int64_t j = 0; j < J; ++j) large |= own[i * J + j] ^ own[i * J + j] << 1, own[i * J + j] += left * z[j];
    }
  }
  return !(large >> 63);
}

// --- is the product of BLAS the product? ---------------------------------------------------------

// x modulo P, at most P/2 + 1 in size, for |x| <= 2^52: nothing here is rounded but the quotient.
inline double residue(double x) { return x - ((x * (1.0 / P) + MAGIC) - MAGIC) * P; }

// A fixed vector that looks random (splitmix64), at most P/2 in size.
std::vector<double> random_vector(int64_t n) {
  std::vector<double> r(n);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t x = (uint64_t(i) + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u, x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    r[i] = residue(double((x ^ (x >> 31)) >> 16));
  }
  return r;
}

// Sum x_j r_j modulo P. So that processors do several at once, these are added up in eight places.
double product(const double *x, const double *r, int64_t n) {
  double total = 0.0;
  for (int64_t first = 0; first < n; first += 64) {
    double sum[8] = {0.0};
    const int64_t end = std::min(n, first + 64), even = first + (end - first) / 8 * 8;
    for (int64_t j = first; j < even; j += 8)
      for (int k = 0; k < 8; ++k) sum[k] += x[j + k] * r[j + k];
    for (int64_t j = even; j < end; ++j) sum[0] += x[j] * r[j];
    for (double part : sum) total += part;
    total = residue(total);
  }
  return total;
}

// seen += A' diag(w) (B r) modulo P. Numbers of A and B are at most 2^27, those of r 2^19: 64
// products add up to 2^52 at most.
void fold(Codes A, Codes B, Weights w, Out<double, 1> seen) {
  const int64_t a = A.shape(1), b = B.shape(1);
  const std::vector<double> r = random_vector(b);
  double *out = seen.data();
  for (int64_t n = 0; n < int64_t(A.shape(0)); ++n) {
    const double *row = A.data() + n * a;
    double u = product(B.data() + n * b, r.data(), b);
    if (w) u = residue(u * residue(std::fmod(w->data()[n], P)));
    for (int64_t j = 0; j < a; ++j) out[j] += row[j] * u;
    if (n % 32 == 31 || n + 1 == int64_t(A.shape(0)))
      for (int64_t j = 0; j < a; ++j) out[j] = residue(out[j]);
  }
}

// Whether A'B r = seen modulo P. A'B comes transposed; of a symmetric one the lower triangle.
// A product that is wrong passes once in a million times (Freivalds).
bool agrees(Codes product, bool half, In<double, 1> seen) {
  const int64_t rows = product.shape(0), columns = product.shape(1);
  const std::vector<double> r = random_vector(rows);
  std::vector<double> found(columns, 0.0);
  for (int64_t l = 0; l < rows; ++l) {
    const double *own = product.data() + l * columns;
    for (int64_t k = 0; k < (half ? l + 1 : columns); ++k) found[k] += residue(own[k]) * r[l];
    for (int64_t k = 0; half && k < l; ++k) found[l] += residue(own[k]) * r[k];
    if (l % 1024 == 1023)
      for (double &x : found) x = residue(x);
  }
  for (int64_t k = 0; k < columns; ++k)
    if (residue(residue(found[k]) - seen.data()[k]) != 0.0) return false;
  return true;
}

} // namespace

void bind_sums(nb::module_ &m) {
  def(m, "combined", combined), def(m, "shifted", shifted), def(m, "nearest", near), def(m, "centred", centred);
  def(m, "survey", survey), def(m, "cut", cut), def(m, "place", place);
  def(m, "sparse_gram", sparse_gram), def(m, "add_rows", add_rows);
  def(m, "fold", fold), def(m, "agrees", agrees);
}
