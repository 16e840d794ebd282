// The Cholesky factor of a margin set that points enter and leave.
//
//     RᵀR = A = K_MM + ρ 11ᵀ,   R upper triangular, its rows contiguous in memory
//
// The bordered system (Karasuyama & Takeuchi 2009, eq. 7)  [K_MM 1; 1ᵀ 0] [x; t] = [v; q]  is  A x + (t - ρq) 1 = v,
// 1ᵀx = q, so two solves with A answer it. ρ11ᵀ changes nothing where 1ᵀx is given, and makes a positive definite
// matrix of K_MM where that is singular along 1 only, as with linear kernels. R⁻ᵀv and R⁻ᵀ1 are kept as two further
// columns while points come and go: half of the solves of a step.
#pragma once

#include "core.h"

struct Factor {
  int k = 0, room = 0;
  double rho = 1;
  std::vector<double> R;                                 // room rows of as many columns
  std::vector<double> v, ones, x, size, column, scratch;  // R⁻ᵀv, R⁻ᵀ1; a solution, and its terms before they cancel

  double *row(int i) { return &R[size_t(i) * room]; }
  void reserve(int members);
  void resize(int members);
  void forget();                          // what is of members that were, and room for more than a few
  // From kernel values, n × n, and ρ; false where a pivot is below this part of its diagonal.
  bool set(const std::vector<double> &G, int n, double rho, double sound);
  void forward(double *a, double *b);     // a ← R⁻ᵀa, and b if there is one
  void backward(double *a, double *b);    // a ← R⁻¹a
  bool grow(double diagonal);             // by the point of `column`, already solved forward; false where unsound
  void extend(double value);              // v by an entry, after `grow`
  void remove(int place);
  double solve(double q);                 // x and size from v, ones; returns t
};
