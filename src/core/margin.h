// The equations of a margin, solved exactly and rounded once: the same bits whatever the way to them was.
//
//     [G 1; 1ᵀ 0] [c; b] = [p; q]
//
// A factor of G + ρ11ᵀ gives corrections of c and b, whose residual is computed with twice the digits until what is
// left could not change how they are rounded: c to multiples of 2⁻⁵² of the largest, b of itself or of f.
#pragma once

#include "factor.h"
#include "gram.h"
#include "tolerances.h"

typedef std::vector<double> Values;

// A number of twice the digits.
struct Twofold {
  double high = 0, low = 0;
  void add(double t) {
    const double s = high + t, z = s - high;
    low += (high - (s - z)) + (t - z);
    high = s;
  }
  void add_product(double a, double b) {
    const double t = a * b;
    add(t);
    low += std::fma(a, b, -t);
  }
  double value() const { return high + low; }
  Twofold less_than(double t) const {  // t less this
    Twofold rest{t, 0};
    rest.add(-high);
    rest.add(-low);
    return rest;
  }
  Twofold plus(double t) const {  // the high part is the nearest number
    Twofold sum = *this;
    sum.add(t);
    return {sum.value(), sum.low - (sum.value() - sum.high)};
  }
};

struct Margin {
  Values G;                // k × k
  std::vector<Twofold> p;  // of each, level less what points at their bounds add to f
  Twofold q;

  // c and b ← the solution, from near it or from 0; whether it is the exact one, rounded. Each correction has to be
  // so much smaller than the one before.
  bool solve(Factor &R, Values &c, double &b, double contraction) const;
};

// Places of a largest set of rows on which the system can be solved, in order.
std::vector<int> independent(const Values &G, int k, double rho);
