// What is published of a solution: a function of the data alone, measured on all points.
//
// Equal points are one group, its bound the sum of theirs; groups are sorted by the bytes of their content. Given
// which groups are on the margin (E) and which beyond it, at their bound (O),
//
//     [K_EE 1; 1ᵀ 0] [c; b] = [level_E - K_EO c_O; total - 1ᵀc_O],      f = Σ c k + b
//
// is solved exactly and rounded once (margin.h), so f has the same bits whatever the way to it was.
//
// A path ends at such a solution, and mostly that is what is published: where E is seen to be its margin set, and no
// group of E has several points. Else the sets are taken from g = y (f - level), not from α: f is unique (it minimises
// a strictly convex function), while many α may belong to it. A first solution has the sides of the path's α; all of g
// is computed from it, and E is where |g| is rounding. Where the rows of E depend on each other (columns of zeros and
// ones with a linear kernel) the equations of a largest independent subset imply the others, so c is computed on that,
// and is the α of no group; the α that is published with it is the path's. A linear f is w·x + b, and w and b are
// refined where g should be 0, so that they are accurate also where Σ c x cancels.
//
// Whatever violates the conditions by more than the end of the path does gives way to that, and says so.
#include "path.h"

#include <numeric>

namespace {

typedef std::vector<int> Some;  // places, in order

// Σa, one after the other.
double sum(const Values &a) {
  double total = a.empty() ? 0.0 : a[0];
  for (size_t i = 1; i < a.size(); ++i) total += a[i];
  return total;
}

struct Candidate {
  Values c, alpha, w, f;  // f = Σ c k without b, where it is known; w of a linear kernel
  double b = 0, residual = 0;
  bool free = true;       // whether c is on all groups of the margin, so that it is their α too
  bool decided = true;    // whether c and b are the exact solution for the sides, rounded
  bool certain = false;   // whether the sides are beyond doubt too
};

class Groups {
 public:
  Groups(Gram &gram, const Solution &end, int copies, bool linear, nb::object exact);
  Candidate best();
  double noise(const Candidate &s) const;

  std::vector<int64_t> group, first;  // of each point; a point of each
  Values y, U;

 private:
  double dual_noise(const Candidate &s) const { return ROUNDED * EPS * sum(s.alpha) * largest * largest; }
  Values combined(const Some &of, const Values &c);
  Values between(int i, const Some &others);
  std::vector<Twofold> sums(const Values &c);
  Values weights(const Values &c) const;
  Some support(const Values &c) const;
  Values products(const Some &of, const Values &w) const;
  Values slopes(Candidate &s);
  std::vector<signed char> sides(const Values &g, double threshold) const;
  bool far_from_sides(const Values &g, const std::vector<signed char> &sides, double threshold) const;
  int side(int64_t i, double alpha) const;
  bool is_beyond(int64_t i, double alpha) const;
  bool solve(const std::vector<signed char> &sides, Candidate &s);
  void centre(Candidate &s);
  bool as_dual(Candidate &s) const;
  double violation(const Values &g, const Values &alpha) const;
  void measure(Candidate &s);
  bool ended(Candidate &s);
  bool canonical(Candidate &s);

  Gram &gram;
  const Solution &end;
  nb::object exact;
  Runs runs;
  Some all, slot;
  Values held, level, X;  // X: rows, of a linear kernel
  double total, largest = 0, most = 0;  // of k(x, x)^½; of α, or what would be seen in f
  int64_t n, d;
};

Groups::Groups(Gram &gram, const Solution &end, int copies, bool linear, nb::object exact)
    : gram(gram), end(end), exact(exact), total(end.total), d(gram.width) {
  const auto &points = end.points;
  const int64_t m = points.size();
  const auto row = [&](int64_t i) { return gram.row(points[i].row); };
  const auto compared = [&](int64_t i, int64_t j) {  // the bytes of two points
    int sign = std::memcmp(row(i), row(j), 8 * d);
    if (!sign) sign = std::memcmp(&points[i].y, &points[j].y, 8);
    return sign ? sign : std::memcmp(&points[i].level, &points[j].level, 8);
  };
  std::vector<std::pair<uint64_t, int64_t>> order(m);  // the first eight bytes as a number, the highest first
  for (int64_t i = 0; i < m; ++i) {
    std::memcpy(&order[i].first, row(i), 8);
    order[i] = {__builtin_bswap64(order[i].first), i};
  }
  std::sort(order.begin(), order.end(), [&](const auto &one, const auto &other) {
    if (one.first != other.first) return one.first < other.first;
    const int sign = compared(one.second, other.second);
    return sign ? sign < 0 : one.second < other.second;
  });
  group.resize(m);
  for (int64_t o = 0; o < m; ++o) {
    const int64_t i = order[o].second;
    if (!o || order[o].first != order[o - 1].first || compared(i, order[o - 1].second)) {
      first.push_back(i), U.push_back(0), held.push_back(0);
      y.push_back(points[i].y), level.push_back(points[i].level), slot.push_back(points[i].row);
      largest = std::max(largest, std::sqrt(std::max(0.0, gram.diagonal[slot.back()])));
    }
    U.back() += points[i].bound;
    held.back() += points[i].alpha;
    group[i] = first.size() - 1;
  }
  n = first.size();
  for (int64_t i = 0, end = 0; i < n && copies > 1; ++i) {  // what the sides of a tube have in common cancels
    while (end < n && !std::memcmp(row(first[i]), row(first[end]), 8 * d)) ++end;
    for (int64_t j = i + 1; j < end; ++j)
      if (y[i] * (level[j] - level[i]) >= 0 && y[i] != y[j]) {
        const double common = std::min(held[i], held[j]);
        held[i] -= common, held[j] -= common;
      }
  }
  for (int64_t i = 0; i < n; ++i) held[i] = std::min(held[i], U[i]), most = std::max(most, held[i]);
  most = std::max(most, SEEN / std::max(largest * largest, 2.2250738585072014e-308));
  all.resize(n);
  std::iota(all.begin(), all.end(), 0);
  std::vector<char> used(gram.n);
  for (int s : slot) used[s] = true;
  runs = runs_of(used);
  if (!linear) return;
  for (int64_t i = 0; i < n; ++i) X.insert(X.end(), row(first[i]), row(first[i]) + d);
}

// --- sums, in order -------------------------------------------------------------------------------------------------

// Σ c k at all groups, over some.
Values Groups::combined(const Some &of, const Values &c) {
  Values by_slot(gram.n), out(n), some(of.size());
  Some slots(of.size());
  for (size_t i = 0; i < of.size(); ++i) slots[i] = slot[of[i]], some[i] = c[of[i]];
  gram.add(slots, some, runs, by_slot.data());
  for (int64_t i = 0; i < n; ++i) out[i] = by_slot[slot[i]];
  return out;
}

// Kernel values of a group with others, the same bits whatever was computed before.
Values Groups::between(int i, const Some &others) {
  Values out(others.size());
  if (exact.is_none()) {
    gram.hold();
    const double *line = gram.line(slot[i], runs);
    for (size_t j = 0; j < others.size(); ++j) out[j] = line[slot[others[j]]];
    return out;
  }
  nb::gil_scoped_acquire gil;
  nb::list them;
  for (int j : others) them.append(first[j]);
  const auto found = nb::cast<In<double, 1>>(exact(first[i], them));
  return Values(found.data(), found.data() + others.size());
}

// Σ c k at a group, of the values that are there, in the order in which `add` adds.
double dot(const double *k, const Values &c) {
  double f = 0;
  size_t i = 0;
  for (; i + 4 <= c.size(); i += 4) f += c[i] * k[i] + c[i + 1] * k[i + 1] + c[i + 2] * k[i + 2] + c[i + 3] * k[i + 3];
  for (; i < c.size(); ++i) f += c[i] * k[i];
  return f;
}

// Σ c k at all groups, in twice the digits: the sums of the path over points at bounds, and what is different here.
std::vector<Twofold> Groups::sums(const Values &c) {
  Some slots;
  Values change, high(gram.n), low(gram.n);
  std::vector<char> same(n);
  for (size_t i = 0; i < end.points.size(); ++i) {
    const Point &p = end.points[i];
    high[p.row] = p.bounds.high, low[p.row] = p.bounds.low;
    if (!same[group[i]] && c[group[i]] == p.carried) same[group[i]] = true;
    else if (p.carried != 0) slots.push_back(p.row), change.push_back(-p.carried);
  }
  for (int64_t i = 0; i < n; ++i)
    if (!same[i] && c[i] != 0) slots.push_back(slot[i]), change.push_back(c[i]);
  gram.add(slots, change, runs, high.data(), low.data());
  std::vector<Twofold> f(n);
  for (int64_t i = 0; i < n; ++i) f[i] = {high[slot[i]], low[slot[i]]};
  return f;
}

Values Groups::weights(const Values &c) const {
  Values w(d), used;
  std::vector<const double *> lines;
  for (int i : support(c)) lines.push_back(&X[i * d]), used.push_back(c[i]);
  add_lines(lines.data(), used.data(), used.size(), w.data(), 0, d);
  return w;
}

Values Groups::products(const Some &of, const Values &w) const {
  Values out(of.size()), rows;
  const bool whole = int64_t(of.size()) == n;
  for (size_t i = 0; i < of.size() && !whole; ++i) rows.insert(rows.end(), &X[of[i] * d], &X[of[i] * d] + d);
  line({Kernel::LINEAR, 0, 0, 0}, w.data(), whole ? X.data() : rows.data(), of.size(), d, out.data());
  return out;
}

Some Groups::support(const Values &c) const {
  Some used;
  for (int64_t i = 0; i < n; ++i)
    if (c[i] != 0) used.push_back(i);
  return used;
}

// The g of a solution, from scratch.
Values Groups::slopes(Candidate &s) {
  if (s.f.empty() && !X.empty()) s.f = products(all, s.w.empty() ? weights(s.c) : s.w);
  if (s.f.empty() && exact.is_none())
    for (auto &own : sums(s.c)) s.f.push_back(own.value());
  if (s.f.empty()) s.f = combined(support(s.c), s.c);
  Values g(n);
  for (int64_t i = 0; i < n; ++i) g[i] = y[i] * (s.f[i] + s.b - level[i]);
  return g;
}

// How much of g rounding may explain: ten times what it typically leaves.
double Groups::noise(const Candidate &s) const {
  if (s.w.empty()) return dual_noise(s);
  double size = 0;
  for (int64_t i = 0; i < n; ++i) {
    double own = 0;
    for (int64_t j = 0; j < d; ++j) own += std::fabs(X[i * d + j] * s.w[j]);
    size = std::max(size, own);
  }
  return ROUNDED * EPS * (size + std::fabs(s.b));
}

// --- solutions for given sides --------------------------------------------------------------------------------------

// The solution with these groups on the margin (0) and those at their bounds (-1), if there is one. Its α is that of
// the path; `canonical` decides whether c replaces it.
bool Groups::solve(const std::vector<signed char> &sides, Candidate &s) {
  s = Candidate();
  s.c.assign(n, 0.0);
  s.alpha = held;
  Some E, O;
  Values bound;
  for (int64_t i = 0; i < n; ++i) {
    if (!sides[i]) E.push_back(i);
    if (sides[i] < 0) O.push_back(i), bound.push_back(s.c[i] = y[i] * U[i]);
  }
  if (E.empty()) {
    centre(s);
    return true;
  }
  const int64_t k = E.size();
  std::vector<Twofold> f;  // that of groups at their bounds
  Values w_f;
  if (!X.empty()) w_f = products(E, weights(s.c));
  else if (exact.is_none()) f = sums(s.c);
  Values own;
  Margin margin;
  for (int64_t i = 0; i < k; ++i) {
    const Values row = between(E[i], E);
    own.insert(own.end(), row.begin(), row.end());
    Twofold from;
    if (!f.empty()) from = f[E[i]];
    else from.add(X.empty() ? dot(between(E[i], O).data(), bound) : w_f[i]);
    margin.p.push_back(from.less_than(level[E[i]]));
  }
  margin.q.add(total);
  for (double c : bound) margin.q.add(-c);
  double mean = 0;
  for (int64_t i = 0; i < k; ++i) mean += own[i * k + i] / k;
  Factor R;
  const double rho = mean > 0 ? mean : 1;
  margin.G = own;
  if (!R.set(own, k, rho, SOUND)) {  // some depend on others: c is on a largest independent set
    const Some basis = independent(own, k, rho);
    const int64_t size = basis.size();
    Some kept;
    const std::vector<Twofold> p = margin.p;
    margin.G.clear(), margin.p.clear();
    for (int i : basis) {
      for (int j : basis) margin.G.push_back(own[i * k + j]);
      kept.push_back(E[i]), margin.p.push_back(p[i]);
    }
    if (basis.empty() || !R.set(margin.G, size, rho, SOUND)) return false;
    s.free = kept.size() == E.size();
    E = kept;
  }
  Values x(E.size());
  s.decided = margin.solve(R, x, s.b, SLOW) || f.empty();  // what is not carried has one order of evaluation
  for (size_t i = 0; i < E.size(); ++i) s.c[E[i]] = x[i];
  if (X.empty()) {
    return true;
  }
  s.w = weights(s.c);  // such that g = 0 on the margin as exactly as w can say it
  std::vector<const double *> rows(E.size());
  for (size_t i = 0; i < E.size(); ++i) rows[i] = &X[E[i] * d];
  for (int round = 0; round < 2; ++round) {
    Values z = products(E, s.w), change(d);
    for (size_t i = 0; i < E.size(); ++i) R.v[i] = level[E[i]] - z[i] - s.b, R.ones[i] = 1;
    R.forward(R.v.data(), R.ones.data());
    const double lift = R.solve(0.0);
    add_lines(rows.data(), R.x.data(), E.size(), change.data(), 0, d);
    for (int64_t j = 0; j < d; ++j) s.w[j] += change[j];
    for (size_t i = 0; i < E.size(); ++i) s.c[E[i]] += R.x[i];
    s.b += lift;
  }
  return true;
}

// Without a margin b is an interval: its middle, as in LIBSVM; of half a line its end.
void Groups::centre(Candidate &s) {
  for (int64_t i = 0; i < n; ++i) s.alpha[i] = std::fabs(s.c[i]);
  if (!X.empty()) s.w = weights(s.c);
  const Some O = support(s.c);
  Values own;
  for (int i : O) own.push_back(s.c[i]);
  for (int64_t i = 0; i < n && !exact.is_none(); ++i) s.f.push_back(dot(between(i, O).data(), own));
  slopes(s);  // and f
  double low = -INF, high = INF;
  for (int64_t i = 0; i < n; ++i) {
    const double t = level[i] - s.f[i];  // the b at which g would be 0
    if ((s.c[i] != 0) == (y[i] < 0)) low = std::max(low, t);
    else high = std::min(high, t);
  }
  s.b = middle(low, high);
}

// --- which sides, and what that violates ----------------------------------------------------------------------------

std::vector<signed char> Groups::sides(const Values &g, double threshold) const {
  std::vector<signed char> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = std::fabs(g[i]) <= threshold ? 0 : g[i] > 0 ? 1 : g[i] < 0 ? -1 : 2;
  return out;
}

// Whether no group is anywhere near the threshold.
bool Groups::far_from_sides(const Values &g, const std::vector<signed char> &wanted, double threshold) const {
  return sides(g, threshold / WIDE) == wanted && sides(g, threshold * WIDE) == wanted;
}

// The side of a group by its α: -1 at its bound, 0 between, 1 at 0.
int Groups::side(int64_t i, double alpha) const {
  const double small = SLACK * std::min(U[i], most);
  return alpha >= U[i] - small ? -1 : alpha > small ? 0 : 1;
}

// Whether α is out of bounds by more than rounding, or not a number.
bool Groups::is_beyond(int64_t i, double alpha) const {
  const double slack = SLACK * std::min(U[i], most);
  return !(alpha >= -slack && alpha <= U[i] + slack);
}

// Uses c as α, if it is within the bounds up to rounding; whether it is.
bool Groups::as_dual(Candidate &s) const {
  double most = 0;
  for (double c : s.c) most = std::max(most, std::fabs(c));
  bool changed = false, inside = s.free;
  Values alpha(n);
  for (int64_t i = 0; i < n && inside; ++i) {
    const double a = y[i] * s.c[i];
    inside = !is_beyond(i, a);
    alpha[i] = std::min(std::max(a, 0.0), U[i]) + 0.0;
    changed |= alpha[i] != a;
  }
  if (!inside) return false;
  s.alpha = alpha;
  if (!changed) return true;
  for (int64_t i = 0; i < n; ++i) s.c[i] = y[i] * alpha[i];
  s.f.clear();
  return true;
}

// The largest violation of a KKT condition; infinite where one is not a number.
double Groups::violation(const Values &g, const Values &alpha) const {
  double worst = 0, balance = -total, size = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double wrong = alpha[i] <= 0 ? -g[i] : alpha[i] >= U[i] ? g[i] : std::fabs(g[i]);
    if (!std::isfinite(wrong)) return INFINITY;
    worst = std::max(worst, wrong);
    balance += y[i] * alpha[i], size += alpha[i];
  }
  balance = std::fabs(balance) / std::max(1.0, size);
  return std::isfinite(balance) ? std::max(worst, balance) : INFINITY;
}

// Sets the KKT residual of a solution, of its f and of its α.
void Groups::measure(Candidate &s) {
  const Values g = slopes(s);
  s.residual = violation(g, s.alpha);
  Candidate dual;
  dual.c.resize(n);
  for (int64_t i = 0; i < n; ++i) dual.c[i] = y[i] * s.alpha[i];
  if (s.w.empty() && dual.c == s.c) return;
  dual.b = s.b;  // α has a g of its own
  const Values own = slopes(dual);
  double apart = 0;
  for (int64_t i = 0; i < n; ++i) apart = std::fabs(own[i] - g[i]) <= apart ? apart : std::fabs(own[i] - g[i]);
  if (!(apart <= dual_noise(s))) s.residual = std::max(s.residual, std::isnan(apart) ? INFINITY : apart);
}

// The end of the path, if it is the solution whose sides are those of g.
bool Groups::ended(Candidate &s) {
  if (!end.exact || !exact.is_none() || !X.empty()) return false;
  s.alpha = held, s.b = end.b;
  std::vector<signed char> own(n);
  bool tells = false;
  for (int64_t i = 0; i < n; ++i) own[i] = held[i] > 0 ? -1 : 1;
  s.c.resize(n), s.f.resize(n);
  for (size_t j = 0; j < end.points.size(); ++j) {
    const Point &p = end.points[j];
    const int64_t i = group[j];
    if (p.alpha != held[i] || (p.alpha > 0 && p.bound != U[i])) return false;  // it has several points, or is half a tube
    s.c[i] = p.y * p.alpha, s.f[i] = p.f;
    if (p.side != MARGIN) continue;
    own[i] = 0;
    tells |= !side(i, p.alpha);
  }
  s.residual = violation(slopes(s), held);
  s.certain = tells && far_from_sides(slopes(s), own, std::max(PROMISE, noise(s)));
  return s.certain;
}

// The solution whose sides are those of g, from one whose sides are those of the path's α.
bool Groups::canonical(Candidate &s) {
  std::vector<signed char> first(n);
  for (int64_t i = 0; i < n; ++i) first[i] = side(i, held[i]);
  for (bool moved = true; moved;) {  // each round fewer groups are on the margin
    if (!solve(first, s)) return false;
    bool tells = false;  // whether a group is between its bounds; else b is an interval, wherever in it the path ended
    for (int64_t i = 0; i < n; ++i) tells |= !first[i] && !side(i, y[i] * s.c[i]);
    moved = false;
    for (int64_t i = 0; i < n; ++i) {
      if (first[i] || !side(i, y[i] * s.c[i]) || (tells && !(s.free && is_beyond(i, y[i] * s.c[i])))) continue;
      first[i] = side(i, y[i] * s.c[i]);
      moved = true;
    }
  }
  const Values alpha = as_dual(s) ? s.alpha : held;
  const double threshold = std::max(PROMISE, noise(s));
  const auto wanted = sides(slopes(s), threshold);
  if (wanted != first) {
    if (!solve(wanted, s)) return false;
    if (!as_dual(s)) s.alpha = alpha;
  }
  measure(s);
  s.certain = s.decided && far_from_sides(slopes(s), wanted, threshold);
  return true;
}

// The canonical solution where it holds, else the path's, each with what it violates.
Candidate Groups::best() {
  Candidate s, own;
  bool one_sided = total == 0;
  for (int64_t i = 0; i < n; ++i) one_sided &= y[i] == y[0];
  own.b = end.b;
  if (one_sided) {  // one class, or none: f is its label
    own.c.assign(n, 0.0), own.alpha = own.c, own.w.assign(X.empty() ? 0 : d, 0.0), own.certain = true;
    return own;
  }
  const bool solved = ended(s) || canonical(s);
  const double explained = solved ? std::min(dual_noise(s), CEILING) : CEILING;
  if (solved && s.residual <= MEASURED * std::max(PROMISE, explained)) return s;
  own.alpha = held;
  for (int64_t i = 0; i < n; ++i) own.c.push_back(y[i] * held[i]);
  if (!X.empty()) own.w = weights(own.c);
  measure(own);
  if (solved && s.residual <= own.residual) own = s;
  own.certain = false;
  return own;
}

template <class T> nb::object array(const std::vector<T> &values) {
  T *out = new T[values.size() + 1];
  std::copy(values.begin(), values.end(), out);
  nb::capsule owner(out, [](void *p) noexcept { delete[] (T *)p; });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(out, {values.size()}, owner));
}

// The group of each point, a point of each group, its α, bound and y c; b, w, whether it is certain, residual, noise.
nb::tuple publish(Gram &gram, const Solution &end, int copies, bool linear, nb::object exact) {
  std::optional<Groups> groups;
  Candidate s;
  double noise;
  {
    nb::gil_scoped_release others;
    groups.emplace(gram, end, copies, linear, exact);
    s = groups->best();
    noise = groups->noise(s);
  }
  for (int64_t i = 0, n = groups->first.size(); i < n; ++i) s.c[i] = groups->y[i] * s.c[i];
  return nb::make_tuple(array(groups->group), array(groups->first), array(s.alpha), array(groups->U), array(s.c), s.b,
                        linear ? array(s.w) : nb::none(), s.certain, s.residual, noise);
}

// out_j + Σ_i c_i V_ij over some rows of V, four at a time.
void sum_of_rows(In<double, 2> V, In<int64_t, 1> rows, In<double, 1> c, Out<double, 1> out) {
  std::vector<const double *> lines(rows.shape(0));
  for (size_t i = 0; i < lines.size(); ++i) lines[i] = V.data() + rows.data()[i] * V.shape(1);
  add_lines(lines.data(), c.data(), lines.size(), out.data(), 0, out.shape(0));
}

}  // namespace

void bind_publish(nb::module_ &m) {
  m.def("publish", publish, nb::arg("gram"), nb::arg("end"), nb::arg("copies"), nb::arg("linear"),
        nb::arg("exact").none());
  def(m, "sum_of_rows", sum_of_rows);
}
