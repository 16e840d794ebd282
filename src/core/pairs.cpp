// Sequential minimal optimisation (Platt 1998). With c = yα and e = t - Kc, a solution has a b with
//
//     max {e_i : c_i may grow}  ≤  b  ≤  min {e_j : c_j may shrink},       Σc = τ
//
// The pair i, j that is furthest from it moves by (e_i - e_j) / (k_ii + k_jj - 2 k_ij), or as far as its bounds
// allow; j is chosen for what that gains (Fan, Chen & Lin 2005). It gets near the solution quickly, from anywhere,
// and solves no system; a path goes on from there. Points so near to each other that no factor of their kernel matrix
// is sound do it no harm.
#include "path.h"

// Moves pairs until no two e are further apart than `gap`, or so many have moved.
void Path::descend(double gap, int64_t most) {
  const int n = s.points.size();
  std::vector<double> low(n), high(n), c(n), e(n), own(n);
  std::vector<int> rows(n);
  double total = 0, sizes = 0;
  for (int i = 0; i < n; ++i) {
    const Point &p = s.points[i];
    low[i] = std::min(p.y * p.bound, 0.0), high[i] = std::max(p.y * p.bound, 0.0);
    c[i] = std::min(std::max(p.y * p.alpha, low[i]), high[i]);
    total += c[i], sizes += std::fabs(c[i]);
    rows[i] = p.row, own[i] = gram.diagonal[p.row];
  }
  for (int round = 0; round < 3 && std::fabs(s.total - total) > EPS * sizes; ++round) {  // restores Σc = τ
    double missing = s.total - total;
    total = sizes = 0;
    for (int i = 0; i < n; ++i) {
      const double step = missing > 0 ? std::min(missing, high[i] - c[i]) : std::max(missing, low[i] - c[i]);
      c[i] += step, missing -= step;
      total += c[i], sizes += std::fabs(c[i]);
    }
  }
  const auto curvature = [&](double a, double b, double ab) {
    return std::max(a + b - 2 * ab, FLAT * (std::fabs(a) + std::fabs(b)) + 1e-300);
  };
  std::vector<int> some;
  const auto errors = [&] {
    for (int i = 0; i < n; ++i) {
      Point &p = s.points[i];
      p.alpha = std::fabs(c[i]);
      p.side = c[i] == 0 ? INSIDE : p.alpha < p.bound ? MARGIN : OUTSIDE;
    }
    compute_g();
    for (int i = 0; i < n; ++i) e[i] = s.points[i].level - s.points[i].f;
  };
  for (int round = 0; round < 5; ++round) {  // after each, e is computed from scratch, of all points
    errors();
    some.resize(n);
    for (int i = 0; i < n; ++i) some[i] = i;
    const int64_t before = most;
    int i = -1;
    double top = -INF;
    for (int t = 0; t < n; ++t)
      if (e[t] > top && c[t] < high[t]) i = t, top = e[t];
    while (most > 0 && i >= 0) {
      gram.hold();
      const double *a = line(rows[i]);
      double bottom = top, best = 0;
      int j = -1;
      for (int t : some)
        if (e[t] < top && c[t] > low[t]) {
          const double d = top - e[t], curve = curvature(own[i], own[t], a[rows[t]]);
          bottom = std::min(bottom, e[t]);
          if (d * d > best * curve) j = t, best = d * d / curve;
        }
      if (top - bottom <= gap || j < 0) break;
      if (most % 500 == 0) {  // points at a bound that nobody would pair with are left out
        gram.check_signals();
        some.erase(std::remove_if(some.begin(), some.end(), [&](int t) {
          return (e[t] < bottom && c[t] <= low[t]) || (e[t] > top && c[t] >= high[t]);
        }), some.end());
      }
      const double *b = line(rows[j]);
      const double from = c[i], back = c[j];
      const double step = std::min({(top - e[j]) / curvature(own[i], own[j], a[rows[j]]), high[i] - from, back - low[j]});
      c[i] = step == high[i] - from ? high[i] : from + step;
      c[j] = step == back - low[j] ? low[j] : back - step;
      const double p = c[i] - from, q = c[j] - back;
      i = -1, top = -INF;
      for (int t : some) {
        e[t] -= p * a[rows[t]] + q * b[rows[t]];
        if (e[t] > top && c[t] < high[t]) i = t, top = e[t];
      }
      --most;
    }
    if (most == 0 || most == before) break;
  }
  errors();
  double below = -INF, above = INF;
  for (int i = 0; i < n; ++i) {
    if (c[i] < high[i]) below = std::max(below, e[i]);
    if (c[i] > low[i]) above = std::min(above, e[i]);
  }
  s.b = middle(below, above);
  for (auto &p : s.points) p.g = p.y * (p.f + s.b - p.level);
  s.members.clear();
  s.factor.k = 0;
  s.factored = s.exact = false;
}
