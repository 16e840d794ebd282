// What is published of a solution: a function of the data alone, in one order of evaluation, measured on all points.
//
// Equal points are one group, its bound the sum of theirs; groups are sorted by the bytes of their content. Given
// which groups are on the margin (E) and which beyond it, at their bound (O),
//
//     [K_EE 1; 1ᵀ 0] [c; b] = [level_E - K_EO c_O; total - 1ᵀc_O],      f = Σ c k + b
//
// is solved in one order of evaluation (margin.h), so f has the same bits on every machine.
//
// The sets are taken from g = y (f - level), not from α: f is unique (it minimises a strictly convex function), while
// many α may belong to it. A first solution has the sides of the path's α; all of g is computed from it, and E is where
// |g| is rounding. Where the rows of E depend on each other (columns of zeros and ones with a linear kernel) the
// equations of a largest independent subset imply the others, so c is computed on that, and is the α of no group; the
// α that is published with it is the path's. A linear f is w·x + b, and w and b are refined where g should be 0, so
// that they are accurate also where Σ c x cancels.
//
// To measure it, f is needed everywhere. Sums over points at their bound are carried from one solution to the next, as
// few of these points change; on the margin they are compared with those that were just computed from scratch.
// Whatever violates the conditions by more than the end of the path does gives way to that, and says so.
#include "margin.h"

#include <numeric>

namespace {

struct Candidate {
  Values c, alpha, w, f;  // f = Σ c k without b, where it is known; w of a linear kernel
  double b = 0, residual = 0;
  bool free = true;       // whether c is on all groups of the margin, so that it is their α too
  bool certain = false;   // whether the sides are beyond doubt
};

// Points, and where their path has ended.
struct Ends {
  In<int64_t, 1> slots;  // of their rows in the Gram
  In<double, 2> X;       // their rows
  In<double, 1> y, level, bound, alpha;
  double total, b;
  int copies;            // points for each row, one after the other
};

// Σ c k over points at their bounds, by slot, as a solution has left it; not a number where it has no point.
struct Sums {
  int64_t gram = 0;  // which it belongs to
  int age = 0;       // changes since it was computed from scratch
  Values f, c;
};

class Groups {
 public:
  Sums sums;  // of the solution before, then of this one
  bool carried = false;
  Groups(Gram &gram, const Ends &ends, std::optional<In<double, 1>> centre, bool linear, nb::object exact);
  Candidate best();
  double noise(const Candidate &s) const;

  std::vector<int64_t> group, first;  // of each point; a point of each
  Values y, U;

 private:
  double dual_noise(const Candidate &s) const { return ROUNDED * EPS * sum(s.alpha) * largest * largest; }
  Values combined(const Some &of, const Values &c);
  Values between(int i, const Some &others, const Some &order = {});
  Values at_bounds(const Some &O, const Values &c);
  Values weights(const Values &c) const;
  Some support(const Values &c) const;
  Values products(const Some &of, const Values &w) const;
  Values slopes(Candidate &s);
  std::vector<signed char> sides(const Values &g, double threshold) const;
  bool solve(const std::vector<signed char> &sides, Candidate &s);
  void centre(Candidate &s);
  bool as_dual(Candidate &s) const;
  double violation(const Values &g, const Values &alpha) const;
  void measure(Candidate &s);
  bool canonical(Candidate &s);

  Gram &gram;
  nb::object exact;
  Runs runs;
  Some all, slot;
  Values held, level, X;  // X: centred rows, of a linear kernel
  double total, b, largest = 0;
  int64_t n, d;
};

Groups::Groups(Gram &gram, const Ends &ends, std::optional<In<double, 1>> centre, bool linear, nb::object exact)
    : gram(gram), exact(exact), total(ends.total), b(ends.b), d(ends.X.shape(1)) {
  const int64_t m = ends.y.shape(0), copies = ends.copies;
  const double *signs = ends.y.data(), *levels = ends.level.data(), *alphas = ends.alpha.data();
  const auto row = [&](int64_t i) { return ends.X.data() + i * d; };
  const auto compared = [&](int64_t i, int64_t j) {  // the bytes of two points
    int sign = std::memcmp(row(i), row(j), 8 * d);
    if (!sign) sign = std::memcmp(signs + i, signs + j, 8);
    return sign ? sign : std::memcmp(levels + i, levels + j, 8);
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
      y.push_back(signs[i]), level.push_back(levels[i]), slot.push_back(ends.slots.data()[i]);
      largest = std::max(largest, std::sqrt(std::max(0.0, gram.diagonal[slot.back()])));
    }
    U.back() += ends.bound.data()[i];
    held.back() += alphas[i];
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
  for (int64_t i = 0; i < n; ++i) held[i] = std::min(held[i], U[i]);
  all.resize(n);
  std::iota(all.begin(), all.end(), 0);
  std::vector<char> used(gram.n);
  for (int s : slot) used[s] = true;
  runs = runs_of(used);
  if (!linear) return;
  X.resize(n * d);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < d; ++j) X[i * d + j] = row(first[i])[j] - (centre ? centre->data()[j] : 0.0);
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
// Lines are read in the order of memory where the places of the others are given in that order.
Values Groups::between(int i, const Some &others, const Some &order) {
  Values out(others.size());
  if (exact.is_none()) {
    gram.hold();
    const double *line = gram.line(slot[i], runs);
    for (int j : order) out[j] = line[slot[others[j]]];
    for (size_t j = 0; j < others.size() && order.empty(); ++j) out[j] = line[slot[others[j]]];
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

// Σ c k at all groups, over those at their bounds: the sums of the solution before, and what has changed. From scratch
// where there are none, where much has changed, and from time to time.
Values Groups::at_bounds(const Some &O, const Values &c) {
  Values wanted(gram.n), change, some, f(n), kept(gram.n, NAN);
  Some moved;
  for (int i : O) wanted[slot[i]] += c[i], some.push_back(c[i]);
  const auto compare = [&] {
    moved.clear(), change.clear();
    for (int j = 0; j < gram.n; ++j)
      if (wanted[j] != sums.c[j]) moved.push_back(j), change.push_back(wanted[j] - sums.c[j]);
  };
  sums.f.resize(gram.n, NAN), sums.c.resize(gram.n);
  compare();
  if (sums.gram != gram.number || ++sums.age > FRESH || 2 * moved.size() > O.size()) {
    sums = {gram.number, 0, kept, Values(gram.n)};
    for (int j : slot) sums.f[j] = 0;
    compare();
  }
  gram.add(moved, change, runs, sums.f.data());
  for (int64_t i = 0; i < n; ++i) {
    const double own = sums.f[slot[i]];  // not a number of a point that is new
    f[i] = kept[slot[i]] = std::isnan(own) ? dot(between(i, O).data(), some) : own;
  }
  sums.f = kept, sums.c = wanted;
  carried = true;
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
  if (s.f.empty()) s.f = X.empty() ? combined(support(s.c), s.c) : products(all, s.w.empty() ? weights(s.c) : s.w);
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
  Values f, f_E(k), G(k * k);
  if (!X.empty()) f_E = products(E, weights(s.c));
  Some both = E;
  if (X.empty()) both.insert(both.end(), O.begin(), O.end());
  Some order(both.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return slot[both[a]] < slot[both[b]]; });
  for (int64_t i = 0; i < k; ++i) {
    const Values row = between(E[i], both, order);
    std::copy_n(row.begin(), k, &G[i * k]);
    if (X.empty()) f_E[i] = dot(&row[k], bound);
  }
  for (int round = 0; round < 2 && X.empty() && exact.is_none(); ++round) {
    f = at_bounds(O, s.c);
    double apart = 0;  // from what was just computed from scratch, on the margin
    for (int64_t i = 0; i < k; ++i) apart = std::max(apart, std::fabs(f[E[i]] - f_E[i]));
    if (apart <= 100 * EPS * sum(U) * largest * largest) break;
    sums.gram = 0;
  }
  Margin margin;
  margin.set(std::move(G), k);
  if (!margin.sound) {  // some depend on others: c is on a largest independent set
    const Some basis = margin.independent();
    Values part(basis.size() * basis.size()), f_part;
    Some kept;
    for (size_t i = 0; i < basis.size(); ++i) {
      for (size_t j = 0; j < basis.size(); ++j) part[i * basis.size() + j] = margin.G[basis[i] * k + basis[j]];
      kept.push_back(E[basis[i]]), f_part.push_back(f_E[basis[i]]);
    }
    if (basis.empty()) return false;
    margin.set(std::move(part), basis.size());
    if (!margin.sound) return false;
    s.free = kept.size() == E.size();
    E = kept, f_E = f_part;
  }
  Values x(E.size());
  for (size_t i = 0; i < E.size(); ++i) x[i] = level[E[i]] - f_E[i];
  s.b = margin.refined(x, total - sum(bound));
  for (size_t i = 0; i < E.size(); ++i) s.c[E[i]] = x[i];
  if (X.empty()) {
    if (f.empty()) return true;
    s.f = combined(E, s.c);
    for (int64_t i = 0; i < n; ++i) s.f[i] = f[i] + s.f[i];
    return true;
  }
  s.w = weights(s.c);  // such that g = 0 on the margin as exactly as w can say it
  std::vector<const double *> rows(E.size());
  for (size_t i = 0; i < E.size(); ++i) rows[i] = &X[E[i] * d];
  for (int round = 0; round < 2; ++round) {
    Values z = products(E, s.w), change(d);
    for (size_t i = 0; i < E.size(); ++i) z[i] = level[E[i]] - z[i] - s.b;
    const double lift = margin.bordered(z, 0.0);
    add_lines(rows.data(), z.data(), z.size(), change.data(), 0, d);
    for (int64_t j = 0; j < d; ++j) s.w[j] += change[j];
    for (size_t i = 0; i < E.size(); ++i) s.c[E[i]] += z[i];
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
  double low = -INFINITY, high = INFINITY;
  for (int64_t i = 0; i < n; ++i) {
    const double t = level[i] - s.f[i];  // the b at which g would be 0
    if ((s.c[i] != 0) == (y[i] < 0)) low = std::max(low, t);
    else high = std::min(high, t);
  }
  const bool below = std::isfinite(low), above = std::isfinite(high);
  s.b = below && above ? (low + high) / 2 : below ? low : above ? high : 0.0;
}

// --- which sides, and what that violates ----------------------------------------------------------------------------

std::vector<signed char> Groups::sides(const Values &g, double threshold) const {
  std::vector<signed char> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = std::fabs(g[i]) <= threshold ? 0 : g[i] > 0 ? 1 : g[i] < 0 ? -1 : 2;
  return out;
}

// Uses c as α, if it is within the bounds up to rounding; whether it is.
bool Groups::as_dual(Candidate &s) const {
  double most = 0;
  for (double c : s.c) most = std::max(most, std::fabs(c));
  bool changed = false, inside = s.free;
  Values alpha(n);
  for (int64_t i = 0; i < n && inside; ++i) {
    const double a = y[i] * s.c[i], slack = 1e-9 * std::min(U[i], most);
    inside = a >= -slack && a <= U[i] + slack;
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

// The solution whose sides are those of g, from one whose sides are those of the path's α.
bool Groups::canonical(Candidate &s) {
  double most = 0;
  for (double alpha : held) most = std::max(most, alpha);
  most = std::max(most, SEEN / std::max(largest * largest, 2.2250738585072014e-308));
  std::vector<signed char> first(n);
  const auto side = [&](int64_t i, double alpha) {
    const double small = 1e-9 * std::min(U[i], most);
    return alpha >= U[i] - small ? -1 : alpha > small ? 0 : 1;
  };
  for (int64_t i = 0; i < n; ++i) first[i] = side(i, held[i]);
  if (!solve(first, s)) return false;
  bool tells = false;  // whether a group is between its bounds; else b is an interval, wherever in it the path ended
  for (int64_t i = 0; i < n; ++i) tells |= !first[i] && !side(i, y[i] * s.c[i]);
  for (int64_t i = 0; i < n && !tells; ++i)
    if (!first[i]) first[i] = side(i, y[i] * s.c[i]);
  if (!tells && !solve(first, s)) return false;
  const Values alpha = as_dual(s) ? s.alpha : held;
  const double threshold = std::max(PROMISE, noise(s));
  const auto wanted = sides(slopes(s), threshold);
  if (wanted != first) {
    if (!solve(wanted, s)) return false;
    if (!as_dual(s)) s.alpha = alpha;
  }
  measure(s);
  const Values g = slopes(s);  // no group is anywhere near the threshold
  s.certain = sides(g, threshold / WIDE) == wanted && sides(g, threshold * WIDE) == wanted;
  return true;
}

// The canonical solution where it holds, else the path's, each with what it violates.
Candidate Groups::best() {
  Candidate s, own;
  bool one_sided = total == 0;
  for (int64_t i = 0; i < n; ++i) one_sided &= y[i] == y[0];
  own.b = b;
  if (one_sided) {  // one class, or none: f is its label
    own.c.assign(n, 0.0), own.alpha = own.c, own.w.assign(X.empty() ? 0 : d, 0.0), own.certain = true;
    return own;
  }
  const bool solved = canonical(s);
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
nb::tuple publish(Gram &gram, In<int64_t, 1> slots, In<double, 2> X, In<double, 1> y, In<double, 1> level,
                  In<double, 1> bound, In<double, 1> alpha, double total, double b, int copies, bool linear,
                  std::optional<In<double, 1>> centre, nb::object exact, const Sums *before) {
  std::optional<Groups> groups;
  Candidate s;
  double noise;
  {
    nb::gil_scoped_release others;
    groups.emplace(gram, Ends{slots, X, y, level, bound, alpha, total, b, copies}, centre, linear, exact);
    if (before) groups->sums = *before;
    s = groups->best();
    noise = groups->noise(s);
  }
  for (int64_t i = 0, n = groups->first.size(); i < n; ++i) s.c[i] = groups->y[i] * s.c[i];
  return nb::make_tuple(array(groups->group), array(groups->first), array(s.alpha), array(groups->U), array(s.c), s.b,
                        linear ? array(s.w) : nb::none(), s.certain, s.residual, noise,
                        nb::cast(groups->carried ? groups->sums : Sums()));
}

// out_j + Σ_i c_i V_ij over some rows of V, four at a time.
void sum_of_rows(In<double, 2> V, In<int64_t, 1> rows, In<double, 1> c, Out<double, 1> out) {
  std::vector<const double *> lines(rows.shape(0));
  for (size_t i = 0; i < lines.size(); ++i) lines[i] = V.data() + rows.data()[i] * V.shape(1);
  add_lines(lines.data(), c.data(), lines.size(), out.data(), 0, out.shape(0));
}

}  // namespace

void bind_publish(nb::module_ &m) {
  nb::class_<Sums>(m, "Sums");
  m.def("publish", publish, nb::arg("gram"), nb::arg("slots"), nb::arg("X"), nb::arg("y"), nb::arg("level"),
        nb::arg("bound"), nb::arg("alpha"), nb::arg("total"), nb::arg("b"), nb::arg("copies"), nb::arg("linear"),
        nb::arg("centre").none(), nb::arg("exact").none(), nb::arg("sums").none());
  def(m, "sum_of_rows", sum_of_rows);
}
