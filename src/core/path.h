// The path of a hinge SVM from one set of points and bounds to another, at the end of which it is solved.
//
//     min ½ αᵀQα - Σ y_i t_i α_i,    0 ≤ α_i ≤ u_i,    Σ y_i α_i = τ,     Q_ij = y_i y_j k(x_i, x_j)
//
// has an f = Σ y α k + b with g = y (f - t) ≥ 0 where α = 0, g ≤ 0 where α = u, and g = 0 between. It is piecewise
// linear in the bounds u (Karasuyama & Takeuchi 2009). So whatever changes is a movement along one path, θ = 0 to 1:
//
//     g_i = y_i (f(x_i) - t_i) + shift_i (1 - θ),    Σ y α = τ + imbalance (1 - θ),    u_i(θ) = u_i(0) + θ rate_i
//
// Points that come have a bound that grows from 0, points that go one that shrinks to 0; bounds that change move;
// a start from anywhere has shifts that are its violations of the conditions, and they decay.
#pragma once

#include "factor.h"
#include "gram.h"

enum Side { INSIDE, MARGIN, OUTSIDE, LEAVING };  // α = 0; g = 0; α = u; to be removed: α = u whatever g

struct Point {
  double y, level;          // sign, and t
  double alpha = 0, g = 0;
  double bound = 0, final = 0, rate = 0;  // u, its value at θ = 1, and how fast it gets there
  double shift = 0;
  double f = 0, was = 0;    // f without b as it was last computed, and the y α of that time
  int row = 0;              // slot of the Gram
  Side side = INSIDE;
  bool watched = false;     // whether it is in the working set
};

// The end of a path: the state from which the next one starts.
struct Solution {
  std::vector<Point> points;
  std::vector<int> members;  // the margin set, in the order of its factor
  Factor factor;
  bool factored = true;      // whether members and factor are there; else the next path makes them
  double b = 0, total = 0;
  double residual = 0;       // the largest violation of a condition
  int64_t breakpoints = 0, restarts = 0, repairs = 0;
  int looks = 0;             // paths since f was computed from scratch

  Solution rescaled(double ratio, double lift) const;  // of ratio · f + lift
};

// The solution without the points in the places that are gone. Rows, y, levels and bounds are those of the points
// afterwards: first those that stay, in order, then those that come.
Solution changed(Gram &gram, Solution before, const std::vector<int> &gone, const std::vector<Point> &after,
                 double total, uint64_t seed);
