// The bordered system of a margin, solved in one order of evaluation: the same bits on every machine.
//
//     [G 1; 1ᵀ 0] [x; t] = [p; q]     is solved by the factor RᵀR = A = G + ρ11ᵀ:
//     x = A⁻¹p - β A⁻¹1,    β = (1ᵀA⁻¹p - q) / 1ᵀA⁻¹1,    t = β + ρq
//
// ρ11ᵀ changes nothing where 1ᵀx is given, and makes a positive definite matrix of G where that is singular along 1
// only, as with linear kernels.
#pragma once

#include "factor.h"
#include "gram.h"
#include "tolerances.h"

typedef std::vector<double> Values;
typedef std::vector<int> Some;  // places, in order

// Σa, one after the other.
inline double sum(const Values &a) {
  double total = a.empty() ? 0.0 : a[0];
  for (size_t i = 1; i < a.size(); ++i) total += a[i];
  return total;
}

// The bordered system of kernel values G, k × k.
struct Margin {
  Values G, R, ones;  // ones: A⁻¹1
  int64_t k = 0;
  double rho = 1;
  bool sound = false;

  void set(Values values, int64_t size) {
    G = std::move(values), k = size;
    Values diagonal(k);
    for (int64_t i = 0; i < k; ++i) diagonal[i] = G[i * k + i];
    const double mean = sum(diagonal) / k;
    rho = mean > 0 ? mean : 1;
    R.resize(k * k);
    for (int64_t i = 0; i < k * k; ++i) R[i] = G[i] + rho;
    sound = cholesky(R.data(), k, k, SOUND);
    ones.assign(k, 1.0);
    if (sound) solve(ones);
  }

  void solve(Values &x) const {  // x ← A⁻¹x
    for (int64_t j = 0; j < k; ++j) {
      const double *row = &R[j * k], t = x[j] /= row[j];
      for (int64_t i = j + 1; i < k; ++i) x[i] -= t * row[i];
    }
    for (int64_t j = k; j--;) {
      double t = x[j];
      for (int64_t i = j + 1; i < k; ++i) t -= R[j * k + i] * x[i];
      x[j] = t / R[j * k + j];
    }
  }

  double bordered(Values &x, double q) const {  // x ← x where x is p; returns t
    solve(x);
    const double beta = (sum(x) - q) / sum(ones);
    for (int64_t i = 0; i < k; ++i) x[i] -= beta * ones[i];
    return beta + rho * q;
  }

  double refined(Values &x, double q) const {
    const Values p = x;
    const double t = bordered(x, q);
    Values rest(k), lines_sum(k);
    std::vector<const double *> lines(k);
    for (int64_t i = 0; i < k; ++i) lines[i] = &G[i * k];
    add_lines(lines.data(), x.data(), k, lines_sum.data(), 0, k);
    for (int64_t i = 0; i < k; ++i) rest[i] = p[i] - lines_sum[i] - t;
    const double lift = bordered(rest, q - sum(x));
    for (int64_t i = 0; i < k; ++i) x[i] += rest[i];
    return t + lift;
  }

  // Places of a largest set of rows on which the system can be solved, in order.
  Some independent() const {
    Some picked;
    Values L(k * k), left(k);
    for (int64_t j = 0; j < k; ++j) left[j] = G[j * k + j] + rho;
    for (int64_t n = 0; n < k; ++n) {
      int p = -1;
      double most = 0, *row = &L[n * k];
      for (int64_t j = 0; j < k; ++j)
        if (left[j] > most && left[j] > DEPENDENT * (G[j * k + j] + rho)) p = j, most = left[j];
      if (p < 0) break;
      for (int64_t j = 0; j < k; ++j) row[j] = G[p * k + j] + rho;
      for (int64_t q = 0; q < n; ++q)
        for (int64_t j = 0; j < k; ++j) row[j] -= L[q * k + p] * L[q * k + j];
      const double root = std::sqrt(most);
      for (int64_t j = 0; j < k; ++j) {
        row[j] /= root;
        left[j] -= row[j] * row[j];
      }
      picked.push_back(p);
      left[p] = 0;
    }
    std::sort(picked.begin(), picked.end());
    return picked;
  }
};
