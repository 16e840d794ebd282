#include "margin.h"

namespace {

const int ROUNDS = 24;          // of corrections, each by a factor of four at the least
const double UNSEEN = 0x1p-80;  // part of the largest coefficient that is too small to matter
const double FINE = 0x1p-8;    // part of the last digit of the largest to which all are rounded first
const double SEEN_IN_F = 0x1p-20;  // what coefficients that are all smaller would add to f, in place of the largest
const double RESIDUE = 0x1p-102;  // what rounding in twice the digits leaves of a residual, for f of 1

// The last digit of a number of this size.
double last_digit(double size) {
  return size > 0 && std::isfinite(size) ? std::ldexp(1.0, std::max(std::ilogb(size) - 52, -1022)) : 0x1p-1022;
}

// Rounds to the nearest multiple of a digit, of two to the even one; whether there is no doubt which. It is rounded to
// multiples of a far smaller number first: of whole fractions, as structured data have, ties are ties then.
bool rounded(const Twofold &t, double digit, double error, double &out) {
  const double whole = std::rint(t.high / digit), rest = (t.high - whole * digit) + t.low, fine = FINE * digit;
  const double near = std::rint(rest / fine) * fine, below = near < 0 ? whole - 1 : whole;
  out = (std::fabs(near) == digit / 2 ? below + std::fmod(std::fabs(below), 2) : whole + std::rint(near / digit)) * digit;
  out += 0.0;
  return std::fabs(rest - near) + error < fine / 2;
}

}  // namespace

bool Margin::solve(Factor &R, Values &c, double &b, double contraction) const {
  const int k = R.k;
  std::vector<Twofold> x(k);
  std::vector<const double *> lines(k);
  for (int i = 0; i < k; ++i) x[i].high = c[i], lines[i] = &G[size_t(i) * k];
  Twofold t{b, 0};
  Values high(k), low(k), minus(k);
  double step = INFINITY, left = INFINITY, rate = 0, size = 0;  // all but `size` relative to the largest
  double most = 1, largest = 0;
  for (int i = 0; i < k; ++i) most = std::max(most, std::fabs(p[i].high)), largest = std::max(largest, G[size_t(i) * k + i]);
  const double seen = largest > 0 ? SEEN_IN_F / largest : 0;
  bool converges = true;
  for (int round = 0; converges && left > UNSEEN; ++round) {
    Twofold missing = q;
    for (int i = 0; i < k; ++i) {
      Twofold rest = p[i];
      for (double part : {t.high, t.low}) rest.add(-part);
      for (double part : {x[i].high, x[i].low}) missing.add(-part);
      high[i] = rest.high, low[i] = rest.low;
    }
    for (int i = 0; i < k; ++i) minus[i] = -x[i].high;
    add_lines_twofold(lines.data(), minus.data(), k, high.data(), low.data(), 0, k);
    for (int i = 0; i < k; ++i) minus[i] = -x[i].low;
    if (round) add_lines(lines.data(), minus.data(), k, low.data(), 0, k);
    for (int i = 0; i < k; ++i) R.v[i] = high[i] + low[i], R.ones[i] = 1;
    R.forward(R.v.data(), R.ones.data());
    const double lift = R.solve(missing.value()), before = step;
    step = 0, size = seen;
    for (int i = 0; i < k; ++i) {
      size = std::max(size, std::fabs(x[i].high + R.x[i]));
      if (!(std::fabs(R.x[i]) <= step)) step = std::fabs(R.x[i]);
    }
    step = std::max(size > 0 ? step / size : step, std::fabs(lift) / std::max(1.0, std::fabs(t.high + lift)));
    converges = step <= std::max(UNSEEN, contraction * before) && round < ROUNDS;
    if (!converges) break;
    for (int i = 0; i < k; ++i) x[i] = x[i].plus(R.x[i]);
    t = t.plus(lift);
    rate = std::max(rate, step / before);  // about ε times what the equations make of a residual
    left = step * std::min(1.0, round ? step / before : 1.0);
  }
  left += RESIDUE * most * (1 + rate / EPS);
  const double digit = last_digit(size), digit_of_b = last_digit(std::max(1.0, std::fabs(t.high)));
  bool decided = converges & rounded(t, digit_of_b, left * digit_of_b * 0x1p53, b);
  for (int i = 0; i < k; ++i) decided &= rounded(x[i], digit, left * size, c[i]);
  return decided;
}

std::vector<int> independent(const Values &G, int k, double rho) {
  std::vector<int> picked;
  Values L(size_t(k) * k), left(k);
  for (int j = 0; j < k; ++j) left[j] = G[size_t(j) * k + j] + rho;
  for (int n = 0; n < k; ++n) {
    int p = -1;
    double most = 0, *row = &L[size_t(n) * k];
    for (int j = 0; j < k; ++j)
      if (left[j] > most && left[j] > DEPENDENT * (G[size_t(j) * k + j] + rho)) p = j, most = left[j];
    if (p < 0) break;
    for (int j = 0; j < k; ++j) row[j] = G[size_t(p) * k + j] + rho;
    for (int q = 0; q < n; ++q)
      for (int j = 0; j < k; ++j) row[j] -= L[size_t(q) * k + p] * L[size_t(q) * k + j];
    const double root = std::sqrt(most);
    for (int j = 0; j < k; ++j) {
      row[j] /= root;
      left[j] -= row[j] * row[j];
    }
    picked.push_back(p);
    left[p] = 0;
  }
  std::sort(picked.begin(), picked.end());
  return picked;
}
