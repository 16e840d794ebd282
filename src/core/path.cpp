// A path is set up, followed, measured and repaired; what a change is.
#include "path.h"

namespace {

// Whether α = 0 is the only solution: Σyα is 0, and there is one sign or no point.
bool one_sided(const std::vector<Point> &points, double total) {
  for (auto &p : points)
    if (p.y != points[0].y) return false;
  return total == 0;
}

}  // namespace

// --- kernel values ------------------------------------------------------------------------------------------------

void Path::prepare() {
  std::vector<char> used(gram.n);
  for (auto &p : s.points) used[p.row] = true;
  runs = runs_of(used);
  ready.assign(gram.n, false);
  root.assign(gram.n, 0.0);
  for (int i = 0; i < gram.n; ++i) root[i] = std::sqrt(std::max(0.0, gram.diagonal[i]));
  push.assign(gram.n, 0.0);
  const int n = s.points.size();
  few = n >= MANY ? n / PART : 0;
  pace.assign(n, 0.0);
  course.assign(n, 0.0);
}

const double *Path::line(int row) {
  if (ready[row])
    if (const double *known = gram.known(row)) return known;
  ready[row] = true;
  return gram.line(row, runs);
}

// out += Σ c k(x, ·) over some points.
void Path::sum(const std::vector<int> &points, const std::vector<double> &c, std::vector<double> &out) {
  std::vector<int> rows(points.size());
  for (size_t i = 0; i < points.size(); ++i) rows[i] = s.points[points[i]].row;
  gram.add(rows, c, runs, out.data());
}

// --- what moves ---------------------------------------------------------------------------------------------------

// A point that goes is pinned to a bound that shrinks to 0.
void Path::remove(int m) {
  Point &p = s.points[m];
  const auto at = std::find(s.members.begin(), s.members.end(), m);
  if (at != s.members.end()) withdraw(at - s.members.begin());
  p.side = LEAVING;
  p.bound = p.alpha, p.final = 0, p.rate = -p.alpha;
}

// New points with g ≥ 0 are inside; the others are outside a bound that grows from 0.
void Path::add(int first) {
  for (size_t i = first; i < s.points.size(); ++i) {
    Point &p = s.points[i];
    gram.hold();
    const double *own = line(p.row);
    double between = 0;  // of points that are not at a bound
    for (int j = 0; j < first; ++j) {
      const Point &q = s.points[j];
      if (q.carried != 0) p.bounds.add_product(q.carried, own[q.row]);
      if (q.y * q.alpha != q.carried) between += (q.y * q.alpha - q.carried) * own[q.row];
    }
    p.f = between + p.bounds.value();
    p.g = p.y * (p.f + s.b - p.level);
    p.side = p.g >= 0 ? INSIDE : OUTSIDE;
    p.bound = p.side == INSIDE ? p.final : 0;
    p.rate = p.final - p.bound;
  }
}

// --- the way to the end -------------------------------------------------------------------------------------------

// Solves for the points, from whatever their α is now.
void Path::fit() {
  for (auto &p : s.points) {
    p.bound = p.final, p.rate = 0;
    if (p.side == LEAVING) p.alpha = 0;
  }
  carry_bounds();
  s.members.clear(), s.factor.k = 0, s.factored = true;
  drop_leaving();
  if (one_sided(s.points, s.total)) {  // f is the class there is
    s.b = s.points.empty() ? 0.0 : s.points[0].level;
    for (auto &p : s.points) p.alpha = p.g = 0, p.side = INSIDE;
    carry_bounds();
    s.residual = 0, s.exact = false;
    return;
  }
  descend(NEAR, PAIRS * int64_t(s.points.size()));
  start_anywhere(0);
  solve();
}

// Follows the path that has been set up, measures its end and repairs it if need be.
void Path::solve() {
  follow_path();
  measure();
  while (missed()) {
    start();
    follow_path();
    measure();
  }
  double imbalance, tolerance;
  worst(imbalance, tolerance);
  for (int round = 0; round < 3 * ROUNDS && !(s.residual <= tolerance); ++round) {
    const Solution best = s;
    ++s.repairs;
    if (round % 3 == 2) {
      descend(0.2 * tolerance, 20000);
      s.residual = worst(imbalance, tolerance);
    } else {  // the violations decay, and all points are looked at
      few = 0;
      start_anywhere(round % 3 ? 1e-2 : 0.0);
      follow_path();
      measure();
    }
    if (!(s.residual <= best.residual)) {  // not a number is no better
      const int64_t steps = s.breakpoints, restarts = s.restarts, repairs = s.repairs;
      s = best;
      s.breakpoints = steps, s.restarts = restarts, s.repairs = repairs;
    }
    worst(imbalance, tolerance);
  }
}

// Gives points that have crossed the margin while they were not watched a shift: another path starts from here.
bool Path::missed() {
  bool found = false;
  for (auto &p : s.points) {
    if (!(few > 0 && s.factored && (p.side == INSIDE ? p.g < -MISSED : p.side == OUTSIDE && p.g > MISSED))) continue;
    p.shift = -p.g;
    p.g = 0;
    found = true;
  }
  few /= 2;
  return found;
}

// Follows the path to θ = 1; where it fails, restarts it with random shifts.
bool Path::follow_path() {
  if (follow_once()) return true;
  for (double size : RESTARTS) {
    ++s.restarts;
    start_anywhere(size);
    if (follow_once()) return true;
  }
  end_path();  // by force: what that violates is left to repair
  return false;
}

bool Path::follow_once() {
  stalls = 0;
  limit = s.breakpoints + 1000 + 20 * int64_t(s.points.size());
  const bool reached = follow();
  window.open = false;  // g of the other points is computed from α
  if (reached) end_path();
  return reached;
}

// Sets θ = 1 and every bound to its final value.
void Path::end_path() {
  theta = 1;
  for (auto &p : s.points) {
    p.bound = p.final, p.rate = 0, p.shift = 0;
    if (p.side >= OUTSIDE) p.alpha = p.bound;
    p.alpha = std::min(p.alpha, p.bound);
  }
}

// Sets the drift of a path from bounds that are to move; g, sides and the factor are good.
void Path::start() {
  double tolerance, imbalance;
  worst(imbalance, tolerance);
  std::vector<int> pushed;
  coefficients.clear(), movers.clear();
  pull = imbalance, spread = 0, heap = std::fabs(imbalance);
  const int n = s.points.size();
  for (int i = 0; i < n; ++i) {
    Point &p = s.points[i];
    heap += p.alpha;
    if (p.rate == 0) continue;
    movers.push_back(i);
    if (p.side < OUTSIDE) continue;
    const double c = p.y * p.rate;
    pushed.push_back(i), coefficients.push_back(c);
    pull += c, heap += std::fabs(c), spread += root[p.row] * std::fabs(c);
  }
  std::fill(push.begin(), push.end(), 0.0);
  sum(pushed, coefficients, push);
  for (int i = 0; i < n; ++i) pace[i] = drift(s.points[i]);
  theta = 0, fresh = true, kept = false, window.open = false;
}

// Sets up a path from whatever α and b are now, with random shifts of this size.
void Path::start_anywhere(double size) {
  for (auto &p : s.points) {
    if (p.side != LEAVING) {
      if (size > 0) {  // members at a bound are where ties come from
        if (p.alpha <= AT_BOUND * p.bound) p.alpha = 0;
        if (p.alpha >= p.bound - AT_BOUND * p.bound) p.alpha = p.bound;
      }
      p.side = p.alpha <= 0 ? INSIDE : p.alpha >= p.bound ? OUTSIDE : MARGIN;
    }
    p.rate = p.final - p.bound;
    if (p.side == INSIDE || (p.side == MARGIN && p.rate > 0)) p.bound = p.final, p.rate = 0;
    p.shift = 0;
  }
  compute_g();
  for (auto &p : s.points) {
    const double noise = size * (0.5 + (random() >> 11) * 0x1p-53);
    if (p.side == LEAVING) continue;
    if (p.side == MARGIN) p.shift = -p.g;
    else if (p.side == INSIDE) p.shift = std::max(0.0, -p.g) + noise;
    else p.shift = -std::max(0.0, p.g) - noise;
    p.g += p.shift;
  }
  start();
  make_factor();
}

// The kernel values of some points.
Values Path::kernel_values(const std::vector<int> &points) {
  const size_t k = points.size();
  std::vector<std::pair<int, int>> order(k);  // as they are in memory
  for (size_t i = 0; i < k; ++i) order[i] = {s.points[points[i]].row, i};
  std::sort(order.begin(), order.end());
  Values G(k * k);
  gram.hold();
  for (size_t a = 0; a < k; ++a) {
    const auto [row, i] = order[a];
    const double *own = line(row);
    for (size_t b = a; b < k; ++b) {
      const auto [other, j] = order[b];
      G[i * k + j] = G[j * k + i] = own[other];
    }
  }
  return G;
}

// Factors the margin set anew; dependent points leave it by exchange.
void Path::make_factor() {
  std::vector<int> members;
  double mean = 0;
  for (size_t i = 0; i < s.points.size(); ++i) {
    mean += gram.diagonal[s.points[i].row] / s.points.size();
    if (s.points[i].side == MARGIN) members.push_back(i);
  }
  s.factored = true;
  kept = false;
  if (s.factor.set(kernel_values(members), members.size(), mean > 0 ? mean : 1, 100 * SOUND)) {
    s.members = members;
    return;
  }
  s.members.clear(), s.factor.k = 0;
  for (int m : members) {
    release(m);
    enter(m);
  }
}

// --- how good it is -----------------------------------------------------------------------------------------------

// The largest violation of a condition, g as it stands; what Σyα lacks, and what is promised.
double Path::worst(double &imbalance, double &tolerance) const {
  double found = 0, weight = 0, size = 0;
  imbalance = -s.total;
  for (auto &p : s.points) {
    imbalance += p.y * p.alpha;
    weight += p.alpha;
    size = std::max(size, gram.diagonal[p.row]);
    const double wrong = p.alpha <= 0 ? -p.g : p.alpha < p.bound ? std::fabs(p.g) : p.g;
    if (wrong > found || wrong != wrong) found = wrong;  // not a number stays
  }
  tolerance = MEASURED * std::max(PROMISE, ROUNDED * EPS * weight * size);
  const double unbalanced = std::fabs(imbalance) / std::max(1.0, weight);
  return unbalanced > found ? unbalanced : found;
}

// Takes what has changed of points at their bounds into the sums over them.
void Path::carry_bounds() {
  std::vector<int> rows;
  coefficients.clear();
  for (auto &p : s.points) {
    const double c = p.side >= OUTSIDE ? p.y * p.alpha : 0.0;
    if (c == p.carried) continue;
    for (double part : {c, -p.carried})
      if (part != 0) rows.push_back(p.row), coefficients.push_back(part);
    p.carried = c;
  }
  if (rows.empty()) return;
  std::vector<double> high(gram.n), low(gram.n);
  for (auto &p : s.points) high[p.row] = p.bounds.high, low[p.row] = p.bounds.low;
  gram.add(rows, coefficients, runs, high.data(), low.data());
  for (auto &p : s.points) p.bounds = {high[p.row], low[p.row]};
}

// Computes f and g of all points from α.
void Path::compute_g() {
  carry_bounds();
  std::vector<int> rows;
  coefficients.clear();
  for (auto &p : s.points)
    if (p.side == MARGIN && p.alpha != 0) rows.push_back(p.row), coefficients.push_back(p.y * p.alpha);
  std::vector<double> high(gram.n), low(gram.n);
  for (auto &p : s.points) high[p.row] = p.bounds.high, low[p.row] = p.bounds.low;
  gram.add(rows, coefficients, runs, high.data(), low.data());
  for (auto &p : s.points) {
    p.f = high[p.row] + low[p.row];  // the same bits in any order of the margin set
    p.g = p.y * (p.f + s.b - p.level);
  }
}

// Drops the points that have gone; the factor's members stay the same.
void Path::drop_leaving() {
  std::vector<int> place(s.points.size());
  int n = 0;
  for (size_t i = 0; i < s.points.size(); ++i) {
    place[i] = n;
    if (s.points[i].side == LEAVING) continue;
    if (size_t(n) != i) s.points[n] = s.points[i];
    ++n;
  }
  s.points.resize(n);
  for (int &m : s.members) m = place[m];
}

// Solves the equations of the margin set once more, exactly, so that α there and b do not depend on the way. Where the
// factor is too far from them, or the solution is out of bounds, everything stays as it is.
void Path::solve_margin() {
  s.exact = false;
  const int k = s.factor.k;
  if (!s.factored || !k) return;
  Margin margin;
  margin.G = kernel_values(s.members);
  margin.q.add(s.total);
  for (auto &p : s.points)
    if (p.side == OUTSIDE) margin.q.add(-p.y * p.alpha);
  Values c(k);
  double most = 0, b = s.b;
  for (int i = 0; i < k; ++i) {
    const Point &p = s.points[s.members[i]];
    margin.p.push_back(p.bounds.less_than(p.level));
    c[i] = p.y * p.alpha;
  }
  kept = false;
  if (!margin.solve(s.factor, c, b, QUICK)) return;
  for (double own : c) most = std::max(most, std::fabs(own));
  for (int i = 0; i < k; ++i) {
    const Point &p = s.points[s.members[i]];
    const double slack = SLACK * std::min(p.bound, most), alpha = p.y * c[i];
    if (!(alpha >= -slack && alpha <= p.bound + slack)) return;
  }
  s.exact = true, s.b = b;
  for (int i = 0; i < k; ++i) {
    Point &p = s.points[s.members[i]];
    p.alpha = std::min(std::max(p.y * c[i], 0.0), p.bound);
  }
}

// Measures: solves the margin set exactly where that can be done, else refines once; g is computed from α for all.
void Path::measure() {
  double imbalance, tolerance;
  carry_bounds();
  drop_leaving();
  solve_margin();
  compute_g();
  Factor &R = s.factor;
  s.residual = worst(imbalance, tolerance);
  if (!s.exact && s.factored && R.k && !(s.residual < 1e-3 * tolerance)) {
    const double db = solve_for([](const Point &p) { return -p.y * p.g; }, -imbalance);
    for (int i = 0; i < R.k && std::isfinite(db); ++i) {
      Point &p = s.points[s.members[i]];
      p.alpha = std::min(std::max(p.alpha + p.y * R.x[i], 0.0), p.bound);
    }
    s.b += std::isfinite(db) ? db : 0;
    compute_g();
  }
  if (s.members.empty()) centre();
  s.residual = worst(imbalance, tolerance);
}

// Without a margin set b is an interval: takes its middle.
void Path::centre() {
  double low = -INF, high = INF;
  for (auto &p : s.points) {
    const double t = -p.y * p.g;
    if ((p.side == INSIDE) == (p.y > 0)) low = std::max(low, t);  // g of these bounds b from below
    else high = std::min(high, t);
  }
  const double lift = middle(low, high);
  s.b += lift;
  for (auto &p : s.points) p.g += p.y * lift;
}

// --- changes ------------------------------------------------------------------------------------------------------

namespace {

// Whether a path takes longer than a new fit: pairs from the solution before are faster where a large part of the
// points is on the margin, and more change, if bounds are small.
bool better_refitted(const Gram &gram, const Solution &before, size_t n_changed) {
  const double n = before.points.size();
  double bound = 0, size = 0, margin = 0;
  for (auto &p : before.points) {
    bound = std::max(bound, p.bound), size = std::max(size, gram.diagonal[p.row]);
    margin += p.side == MARGIN;
  }
  const double limit = bound * size <= EASY && margin > LARGE * n ? std::min(n, BREAK_EVEN * margin) : n;
  return n >= ENOUGH && n_changed > limit;
}

}  // namespace

Solution changed(Gram &gram, Solution s, const std::vector<int> &gone, const std::vector<Point> &after, double total,
                 uint64_t seed) {
  const double total_before = s.total;
  std::vector<char> leaves(s.points.size());
  for (int m : gone) leaves[m] = true;
  const size_t n = s.points.size(), n_new = after.size() + gone.size() - n;
  s.total = total;
  const bool anew = s.points.empty() || one_sided(s.points, total_before) || one_sided(after, total) ||
                    better_refitted(gram, s, gone.size() + n_new);
  const bool scratch = anew && 4 * (gone.size() + n_new) > n;  // sums over points at their bounds too
  bool anywhere = !s.factored;
  s.points.insert(s.points.end(), after.end() - n_new, after.end());
  Path path(gram, s, seed);
  path.prepare();
  size_t at = 0;
  for (size_t i = 0; i < s.points.size(); ++i) {
    Point &p = s.points[i];
    if (scratch) p.bounds = {}, p.carried = 0;
    if (i < n && leaves[i]) {
      path.remove(i);
      continue;
    }
    anywhere |= p.level != after[at].level;
    p.level = after[at].level;
    p.final = after[at++].final;
    if (p.side == INSIDE || (p.side == MARGIN && p.final >= p.bound)) p.bound = p.final;
    p.rate = p.final - p.bound;
  }
  if (!scratch) path.add(n);
  if (anew) {
    path.fit();
  } else {
    if (anywhere) path.start_anywhere(0);
    else path.start();
    path.solve();
  }
  s.points.shrink_to_fit();
  s.factor.forget();
  return s;
}

Solution Solution::rescaled(double ratio, double lift) const {
  Solution other = *this;
  for (auto &p : other.points) {
    for (double *v : {&p.alpha, &p.g, &p.bound, &p.final, &p.f, &p.bounds.high, &p.bounds.low, &p.carried, &p.level})
      *v *= ratio;
    p.level += lift;
  }
  other.b = b * ratio + lift, other.total = total * ratio, other.residual = residual * ratio;
  return other;
}
