#include "path.h"

#include <random>

namespace {

// The tolerances, in one table.
const double EPS = 0x1p-52;
const double NOISE = 1e-14;     // a rate below this part of the terms of its sum is rounding: 45 ε
const double TIE = 1e-15;       // events closer than this in θ happen at once: 4 ε
const double PROMISE = 1e-9;    // violation of a condition that is left; f is near ±1 on the margin
const double ROUNDED = 10;      // times ε Σα max k(x, x): what rounding of g leaves where that is more
const double MEASURED = 0.8;    // of the tolerance: measured again it may be a little more
const double MISSED = 1e-12;    // g beyond the margin by more than rounding, of a point that was not watched
const double AT_BOUND = 1e-10;  // part of a bound within which α is moved to it before a restart
const double NEAR = 1e-3;       // how near pairs (SMO) get to the solution before a path takes over: LIBSVM's
const double FLAT = 1e-16;      // curvature along a pair, to its terms, that is rounding

const double RESTARTS[] = {1e-2, 1.0};  // sizes of the random shifts with which a path that stalls is restarted
const int ROUNDS = 2;                   // of repairs: from there, with random shifts, by pairs
const int FRESH = 32;                   // changes after which g is computed from scratch

// When what is faster: measured, and of no effect on the solution.
const int MANY = 1000, PART = 16;       // points from which on a working set pays; the part of them that it is
const int LONGEST = 100;                // breakpoints with one working set
const double SHORT = 0.02, BOLD = 3.0;  // of the rest of the path: the least it must last; how far it is trusted
const int ENOUGH = 200, PAIRS = 50;     // points from which on pairs may be faster than a path; pairs for each
const double LARGE = 1.0 / 8, BREAK_EVEN = 0.6, EASY = 10.0;  // see `better_refitted`

const double INF = INFINITY;

// The middle of the interval between two limits, as in LIBSVM; of half a line its end.
double middle(double low, double high) {
  if (std::isinf(low)) return std::isinf(high) ? 0.0 : high;
  return std::isinf(high) ? low : 0.5 * (low + high);
}

// Whether α = 0 is the only solution: Σyα is 0, and there is one sign or no point.
bool one_sided(const std::vector<Point> &points, double total) {
  for (auto &p : points)
    if (p.y != points[0].y) return false;
  return total == 0;
}

class Path {
 public:
  Path(Gram &gram, Solution &s, uint64_t seed) : gram(gram), s(s), random(seed) {}

  void prepare();
  void add(int first);
  void remove(int m);
  void fit();
  void start();
  void start_anywhere(double size);
  void solve();
  double worst(double &imbalance, double &tolerance) const;

  bool from_scratch = false;

 private:
  struct Window {  // the working set: for some breakpoints only its points are looked at
    bool open = false;
    std::vector<int> points;
    std::vector<double> packed;  // kernel values of members with its points, in rows of `stride`
    std::vector<int> line;       // of `packed`, for each point that is or was a member
    std::vector<double> before;  // g when it was opened
    std::vector<double> gone;    // what the moving bounds have added to f since, up to θ = mark
    int stride = 0, lines = 0, events = 0;
    double opened = 0, horizon = 0, climb = 0, mark = 0;  // θ when opened, θ up to which it will do, change of b
  };

  const double *line(int row);
  double drift(const Point &p) const { return p.y * push[p.row] - p.shift; }
  void sum(const std::vector<int> &points, const std::vector<double> &c, std::vector<double> &out);
  void measure();
  void compute_g(bool anew);
  void centre();
  void drop_leaving();
  void make_factor();

  bool missed();
  bool follow_path();
  bool follow_once();
  bool follow();
  template <class F> double solve_for(F value, double q);
  double direction(double &run);
  double first_member(double most, int &place, bool &upper) const;
  double first_other(double most, double db, double run, int &who);
  void advance(double step, double db, double run);
  void end_path();
  void open_window();
  void close_window();

  void carry(const Point &p, double sign);
  void settle(int m, bool upper);
  int withdraw(int place);
  void release(int c);
  bool join(int c);
  void enter(int c);
  bool exchange(int c, const std::vector<double> &v);
  void count_gone();
  void leave(int place, bool upper);
  void descend(double gap, int64_t most);

  Gram &gram;
  Solution &s;
  std::mt19937_64 random;
  Runs runs;                 // slots of the rows of the points
  std::vector<char> ready;   // slots whose lines have all these
  std::vector<double> push;  // the rate of f, by slot, that moving bounds cause
  std::vector<double> f;     // scratch by slot
  std::vector<double> pace;  // the rate of g of each point, or of each in the window
  std::vector<double> root;  // of k(x, x), by slot
  std::vector<double> course;  // what y α of a member has added up to since the window was opened
  std::vector<int> movers;   // points whose bounds move
  std::vector<double> coefficients;
  Window window;
  bool kept = false;  // whether the factor's columns v and 1 are those of the present members and drift
  bool fresh = false;  // whether a window can be opened now
  int few = 0;        // points of a window; 0: none is used
  double theta = 0, pull = 0;   // the rate of Σyα that moving bounds and the imbalance cause
  double spread = 0, heap = 0;  // bounds of the terms of drift and pull before they cancel
  int64_t limit = 0;
  int stalls = 0;
};

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
  if (p.side == MARGIN && s.factored) withdraw(std::find(s.members.begin(), s.members.end(), m) - s.members.begin());
  p.side = LEAVING;
  p.bound = p.alpha, p.final = 0, p.rate = -p.alpha;
}

// New points with g ≥ 0 are inside; the others are outside a bound that grows from 0.
void Path::add(int first) {
  std::vector<int> support;
  for (int i = 0; i < first; ++i)
    if (s.points[i].alpha > 0) support.push_back(i);
  for (size_t i = first; i < s.points.size(); ++i) {
    Point &p = s.points[i];
    p.f = 0;
    gram.hold();
    const double *own = support.empty() ? nullptr : line(p.row);
    for (int j : support) p.f += s.points[j].y * s.points[j].alpha * own[s.points[j].row];
    p.g = p.y * (p.f + s.b - p.level);
    p.side = p.g >= 0 ? INSIDE : OUTSIDE;
    p.bound = p.side == INSIDE ? p.final : 0;
    p.rate = p.final - p.bound;
  }
}

// --- the way to the end -------------------------------------------------------------------------------------------

// Solves for the points, from whatever their α is now.
void Path::fit() {
  double largest = 0;
  for (auto &p : s.points) p.bound = p.final, p.rate = 0, p.side = INSIDE, largest = std::max(largest, p.bound);
  s.members.clear(), s.factor.k = 0, s.factored = true;
  from_scratch = true;
  if (one_sided(s.points, s.total)) {  // f is the class there is
    s.b = s.points.empty() ? 0.0 : s.points[0].level;
    for (auto &p : s.points) p.alpha = p.g = p.was = 0;
    s.residual = 0;
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
    from_scratch = true;
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
  from_scratch = true;
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
  compute_g(from_scratch);
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

// Factors the margin set anew; dependent points leave it by exchange.
void Path::make_factor() {
  std::vector<int> members;
  double mean = 0;
  for (size_t i = 0; i < s.points.size(); ++i) {
    mean += gram.diagonal[s.points[i].row] / s.points.size();
    if (s.points[i].side == MARGIN) members.push_back(i);
  }
  const int k = members.size();
  s.factor.rho = mean > 0 ? mean : 1;
  s.factored = true;
  kept = false;
  std::vector<double> A(size_t(k) * k);
  gram.hold();
  for (int i = 0; i < k; ++i) {
    const double *own = line(s.points[members[i]].row);
    for (int j = i; j < k; ++j) A[size_t(i) * k + j] = own[s.points[members[j]].row] + s.factor.rho;
  }
  if (s.factor.set(A)) {
    s.members = members;
    return;
  }
  s.members.clear(), s.factor.k = 0;
  for (int m : members) {
    release(m);
    enter(m);
  }
}

// --- one breakpoint after the other -------------------------------------------------------------------------------

// With the rate h of g and s of Σyα that moving bounds and decaying shifts cause,
//
//     [K_MM 1; 1ᵀ 0] [dc; db] = [-y h; -s],      dg = y (K_·M dc + db) + h,     dα = y dc
//
// keeps g = 0 on the margin set (Karasuyama & Takeuchi 2009, eq. 7 to 10). Rates below the rounding noise of their
// own terms are zero: most ties of degenerate data are such noise. Returns whether θ = 1 was reached.
bool Path::follow() {
  int next = -1;  // a point that the last step has led to the margin set
  while (true) {
    if (next >= 0) {
      const int who = next;
      next = -1;
      if (!join(who)) {  // it depends on the margin set
        if (window.open) close_window();
        release(who);
        enter(who);
      }
      continue;
    }
    if (s.breakpoints >= limit || stalls > 60 + 2 * s.factor.k) return false;
    if (s.breakpoints % 256 == 255) gram.check_signals();
    if (fresh && few > 0) {
      fresh = false;
      open_window();
    } else if (window.open && (window.events >= LONGEST || theta >= window.horizon)) {
      fresh = window.events > 0;
      close_window();
      continue;
    }
    // a direction, and the first event along it
    double run = 1, end = window.open ? std::min(1.0, window.horizon) : 1.0;
    gram.hold();
    const double db = direction(run);
    int place = -1, who = -1;
    bool upper = false;
    double step = first_member(run > 0 ? std::max(end - theta, 0.0) : INF, place, upper);
    step = first_other(step, db, run, who);
    if (!std::isfinite(step)) {
      if (!window.open) return false;
      close_window();
      continue;
    }
    if (who >= 0) line(s.points[who].row);
    // go there, and let it happen
    advance(step, db, run);
    if (who < 0 && place < 0) {
      theta = end;
      if (end >= 1) return true;
      continue;
    }
    ++s.breakpoints, ++window.events;
    stalls = step <= TIE ? stalls + 1 : 0;
    if (who >= 0) {
      if (s.points[who].rate != 0) release(who);
      next = who;
    } else if (s.points[s.members[place]].rate != 0) {  // a member has reached a bound that moves
      if (window.open) close_window();
      settle(withdraw(place), upper);
    } else {
      leave(place, upper);
    }
    fresh = !window.open && run > 0;
  }
}

// Solves the bordered system of the margin set for values of its points, and Σx = q; returns t.
template <class F> double Path::solve_for(F value, double q) {
  Factor &R = s.factor;
  if (!kept) {
    for (int i = 0; i < R.k; ++i) R.v[i] = value(s.points[s.members[i]]), R.ones[i] = 1;
    R.forward(R.v.data(), R.ones.data());
  }
  return R.solve(q);
}

// The direction of the members; returns db. Without members b alone moves, until there is one: then run is 0.
double Path::direction(double &run) {
  if (!s.factor.k) {
    if (!(std::fabs(pull) > NOISE * heap)) return 0;
    run = 0;
    return pull > 0 ? 1 : -1;
  }
  const double db = solve_for([&](const Point &p) { return -p.y * drift(p); }, -pull);
  kept = true;
  return db;
}

// The first member to reach a bound.
double Path::first_member(double best, int &place, bool &upper) const {
  double fastest = 0;
  for (int i = 0; i < s.factor.k; ++i) {
    const Point &p = s.points[s.members[i]];
    const double noise = NOISE * s.factor.size[i], down = -p.y * s.factor.x[i], up = -down - p.rate;
    if (down > noise) {
      const double step = std::max(p.alpha, 0.0) / down;
      if (step < best - TIE || (step <= best + TIE && down > fastest))
        best = step, fastest = down, place = i, upper = false;
    }
    if (up > noise) {
      const double step = std::max(p.bound - p.alpha, 0.0) / up;
      if (step < best - TIE || (step <= best + TIE && up > fastest)) best = step, fastest = up, place = i, upper = true;
    }
  }
  return best;
}

// The first point, of all or of the window, to reach the margin; sets the pace of g.
double Path::first_other(double best, double db, double run, int &who) {
  const int k = s.factor.k, n = window.open ? window.points.size() : s.points.size();
  std::vector<const double *> lines(k);
  double terms = run * spread, fastest = 0;
  for (int i = 0; i < k; ++i) {
    const int m = s.members[i];
    lines[i] = window.open ? &window.packed[size_t(window.line[m]) * window.stride] : line(s.points[m].row);
    terms += root[s.points[m].row] * std::fabs(s.factor.x[i]);
  }
  f.resize(std::max<size_t>(gram.n, n));
  if (window.open) {
    std::fill_n(f.begin(), n, db);
    add_lines(lines.data(), s.factor.x.data(), k, f.data(), 0, n);
  } else {
    for (auto [begin, end] : runs) {
      std::fill(f.begin() + begin, f.begin() + end, db);
      add_lines(lines.data(), s.factor.x.data(), k, f.data(), begin, end);
    }
  }
  for (int i = 0; i < n; ++i) {
    const int j = window.open ? window.points[i] : i;
    const Point &p = s.points[j];
    double toward = p.y * (window.open ? f[i] : f[p.row]) + run * drift(p), gap = -p.g;
    pace[i] = toward;
    if (p.side == INSIDE) toward = -toward, gap = -gap;
    else if (p.side != OUTSIDE) continue;
    if (toward <= 0 || gap > (best + TIE) * toward) continue;
    if (toward <= NOISE * (root[p.row] * terms + std::fabs(db) + run * std::fabs(p.shift))) continue;
    const double step = std::max(gap, 0.0) / toward;
    if (step < best - TIE || (step <= best + TIE && toward > fastest)) best = step, fastest = toward, who = j;
  }
  return best;
}

void Path::advance(double step, double db, double run) {
  for (int i = 0; i < s.factor.k; ++i) {
    Point &p = s.points[s.members[i]];
    const double top = p.bound + step * p.rate, alpha = p.alpha + step * p.y * s.factor.x[i];
    p.alpha = std::min(std::max(alpha, 0.0), top);
    if (window.open) course[s.members[i]] += step * s.factor.x[i];
  }
  const int n = window.open ? window.points.size() : s.points.size();
  for (int i = 0; i < n; ++i) s.points[window.open ? window.points[i] : i].g += step * pace[i];
  if (window.open) window.climb += step * db;
  for (int m : s.members) s.points[m].g = 0;
  s.b += step * db;
  if (!(run > 0)) return;
  theta += step;
  for (int j : movers) {
    Point &p = s.points[j];
    p.bound += step * p.rate;
    if (p.rate != 0 && p.side >= OUTSIDE) p.alpha = p.bound;
  }
}

// --- events -------------------------------------------------------------------------------------------------------

// Adds the moving bound of a point outside to the rates of f and Σyα, or takes it out again.
void Path::carry(const Point &p, double sign) {
  count_gone();
  coefficients.assign(1, sign * p.y * p.rate);
  gram.add({p.row}, coefficients, runs, push.data());
  pull += coefficients[0];
  kept = false;
}

// Puts a point at a bound; if the bound moves, α moves with it.
void Path::settle(int m, bool upper) {
  Point &p = s.points[m];
  p.g = 0;
  p.side = upper ? OUTSIDE : INSIDE;
  if (!upper) p.bound = p.final, p.rate = 0;
  p.alpha = upper ? p.bound : 0.0;
  if (upper && p.rate != 0) carry(p, 1);
}

// Takes a member out of the factor; returns the point.
int Path::withdraw(int place) {
  const int m = s.members[place];
  s.factor.remove(place);
  s.members.erase(s.members.begin() + place);
  return m;
}

// A point is about to enter the margin set, and no longer moves with its bound.
void Path::release(int c) {
  Point &p = s.points[c];
  if (p.side == OUTSIDE && p.rate != 0) carry(p, -1);
  if (p.rate > 0) p.bound = p.final, p.rate = 0;  // a bound that grows need not be waited for
  p.side = MARGIN;
  p.g = 0;
}

// Puts a point into the margin set, unless it depends on the members.
bool Path::join(int c) {
  Factor &R = s.factor;
  const int k = R.k;
  R.reserve(k + 2);
  Point &p = s.points[c];
  const double *own = line(p.row);
  for (int i = 0; i < k; ++i) R.column[i] = own[s.points[s.members[i]].row] + R.rho;
  R.forward(R.column.data(), nullptr);
  if (!R.grow(gram.diagonal[p.row] + R.rho)) return false;
  if (kept) R.extend(-p.y * drift(p));
  s.members.push_back(c);
  p.side = MARGIN;
  p.g = 0;
  if (window.open) {
    window.line[c] = window.lines++;
    double *to = &window.packed[size_t(window.line[c]) * window.stride];
    for (size_t i = 0; i < window.points.size(); ++i) to[i] = own[s.points[window.points[i]].row];
  }
  return true;
}

// A member has gone to a bound that stands.
void Path::leave(int place, bool upper) {
  const int m = withdraw(place);
  settle(m, upper);
  if (!window.open || s.points[m].watched) return;
  s.points[m].watched = true;  // it is near the margin: the window gets it
  const int w = window.points.size();
  window.points.push_back(m);
  for (int j : s.members) window.packed[size_t(window.line[j]) * window.stride + w] = line(s.points[j].row)[s.points[m].row];
}

// Puts a released point into the margin set; if it depends on the members, by exchange.
void Path::enter(int c) {
  while (!join(c)) {
    std::vector<double> v(s.factor.column.begin(), s.factor.column.begin() + s.factor.k);
    s.factor.backward(v.data(), nullptr);
    if (exchange(c, v)) return;
  }
}

// A point whose kernel column depends on those of the margin set,  k_c = A v,  cannot enter it: A would be singular.
// Then α_c moves by t and the margin set by -t v, which leaves f as it is, until one of them is at a bound. What f
// changes where the dependence is only nearly exact is left to repair. Returns whether the bound is c's own. (Without
// exchanges, points that depend going to the nearer bound, 800 updates of near duplicates take 1471 restarts for 15,
// and of huge bounds 7 end above the promise.)
bool Path::exchange(int c, const std::vector<double> &v) {
  Point &p = s.points[c];
  const int k = s.factor.k;
  const bool free = 0 < p.alpha && p.alpha < p.bound, up = (p.alpha <= 0.5 * p.bound) != free;
  const double amount = up ? p.y : -p.y;  // of y α of c, for a unit
  double most = 1, best = up ? p.bound - p.alpha : p.alpha, fastest = 0;
  const double own = best;
  for (double w : v) most = std::max(most, std::fabs(w));
  int place = -1;
  for (int i = 0; i < k; ++i) {
    const Point &q = s.points[s.members[i]];
    const double speed = -q.y * v[i] * amount;
    if (!(std::fabs(speed) > 1e-10 * most)) continue;
    const double step = std::max(speed > 0 ? q.bound - q.alpha : q.alpha, 0.0) / std::fabs(speed);
    if (step < best || (step == best && place >= 0 && std::fabs(speed) > fastest))
      best = step, place = i, fastest = std::fabs(speed);
  }
  p.alpha += up ? best : -best;
  for (int i = 0; i < k; ++i) {
    Point &q = s.points[s.members[i]];
    q.alpha = std::min(std::max(q.alpha - best * q.y * v[i] * amount, 0.0), q.bound);
  }
  if (own <= best || place < 0) {
    settle(c, up);
    return true;
  }
  const bool upper = -s.points[s.members[place]].y * v[place] * amount > 0;
  settle(withdraw(place), upper);
  return false;
}

// --- the working set ----------------------------------------------------------------------------------------------
// Time per breakpoint is reading the kernel values of the margin set with all points, most of which are far from it.
// The points that could reach it soonest are packed into a small matrix; later, g of the others catches up in one
// pass. A point that has crossed unseen gets a shift that decays, so that the path goes on from a valid point; at
// θ = 1 that is another path.

void Path::count_gone() {
  if (!window.open) return;
  for (auto [begin, end] : runs)
    for (int i = begin; i < end; ++i) window.gone[i] += (theta - window.mark) * push[i];
  window.mark = theta;
}

void Path::open_window() {
  const int n = s.points.size(), k = s.members.size();
  double typical = 0;
  for (double rate : pace) typical += 0.5 * std::fabs(rate) / n;
  std::vector<double> time(n, INF);
  std::vector<int> order(n);
  for (int i = 0; i < n; ++i) {
    const Point &p = s.points[i];
    const double sense = p.side == INSIDE ? 1 : -1;
    order[i] = i;
    if (p.side == INSIDE || p.side == OUTSIDE)
      time[i] = sense * p.g / (std::max(-sense * pace[i], 0.0) + typical + 1e-30);
    if (time[i] != time[i]) time[i] = 0;
  }
  std::nth_element(order.begin(), order.begin() + few, order.end(), [&](int a, int b) { return time[a] < time[b]; });
  const double horizon = time[order[few]];
  if (!(horizon > SHORT * (1 - theta))) return;  // more points could reach the margin almost at once
  window.points.assign(order.begin(), order.begin() + few);
  std::sort(window.points.begin(), window.points.end(), [&](int a, int b) { return s.points[a].row < s.points[b].row; });
  window.stride = few + LONGEST + 8;
  window.packed.resize(size_t(k + LONGEST + 8) * window.stride);
  window.line.assign(n, -1);
  window.before.resize(n);
  window.gone.assign(gram.n, 0.0);
  for (int i = 0; i < n; ++i) window.before[i] = s.points[i].g, s.points[i].watched = false;
  for (int j : window.points) s.points[j].watched = true;
  std::fill(course.begin(), course.end(), 0.0);
  gram.hold();
  for (int i = 0; i < k; ++i) {
    window.line[s.members[i]] = i;
    const double *own = line(s.points[s.members[i]].row);
    for (int j = 0; j < few; ++j) window.packed[size_t(i) * window.stride + j] = own[s.points[window.points[j]].row];
  }
  window.lines = k, window.events = 0, window.climb = 0, window.opened = window.mark = theta;
  window.horizon = theta + BOLD * horizon;
  window.open = true;
}

// Lets g of the other points catch up, and notes the average rates of all. Points that have crossed the margin unseen
// get a shift.
void Path::close_window() {
  std::vector<int> moved;
  coefficients.clear();
  const int n = s.points.size();
  for (int i = 0; i < n; ++i)
    if (course[i] != 0) moved.push_back(i), coefficients.push_back(course[i]);
  f.resize(gram.n);
  for (auto [begin, end] : runs) std::fill(f.begin() + begin, f.begin() + end, window.climb);
  sum(moved, coefficients, f);
  count_gone();
  const double passed = theta - window.opened, left = 1 - theta;
  for (int i = 0; i < n; ++i) {
    Point &p = s.points[i];
    if (!p.watched && p.side != MARGIN) p.g += p.y * (f[p.row] + window.gone[p.row]) - passed * p.shift;
    pace[i] = passed > 0 ? (p.g - window.before[i]) / passed : drift(p);
    if (!(left > 0 && (p.side == INSIDE ? p.g < -MISSED : p.side == OUTSIDE && p.g > MISSED))) continue;
    p.shift -= p.g / left;
    p.g = 0;
  }
  kept = false;
  window.open = false;
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

// Computes f and g of all points from their α: from scratch, or from what has changed since that was last done.
void Path::compute_g(bool anew) {
  std::vector<int> moved;
  coefficients.clear();
  for (size_t i = 0; i < s.points.size(); ++i) {
    Point &p = s.points[i];
    if (anew) p.was = p.f = 0;
    const double c = p.y * p.alpha;
    if (c != p.was) moved.push_back(i), coefficients.push_back(c - p.was);
    p.was = c;
  }
  f.assign(gram.n, 0.0);
  sum(moved, coefficients, f);
  for (auto &p : s.points) {
    p.f += f[p.row];
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

// Measures, g computed from α for all points; where it is not near 0 on the margin set, after one refinement.
void Path::measure() {
  double imbalance, tolerance;
  compute_g(from_scratch);
  drop_leaving();
  Factor &R = s.factor;
  s.residual = worst(imbalance, tolerance);
  if (s.factored && R.k && !(s.residual < 1e-3 * tolerance)) {
    kept = false;
    const double db = solve_for([](const Point &p) { return -p.y * p.g; }, -imbalance);
    for (int i = 0; i < R.k && std::isfinite(db); ++i) {
      Point &p = s.points[s.members[i]];
      p.alpha = std::min(std::max(p.alpha + p.y * R.x[i], 0.0), p.bound);
    }
    s.b += std::isfinite(db) ? db : 0;
    compute_g(from_scratch);
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

// --- pairs --------------------------------------------------------------------------------------------------------

// Sequential minimal optimisation (Platt 1998). With c = yα and e = t - Kc, a solution has a b with
//
//     max {e_i : c_i may grow}  ≤  b  ≤  min {e_j : c_j may shrink},       Σc = τ
//
// The pair i, j that is furthest from it moves by (e_i - e_j) / (k_ii + k_jj - 2 k_ij), or as far as its bounds
// allow; j is chosen for what that gains (Fan, Chen & Lin 2005). It gets near the solution quickly, from anywhere,
// and solves no system; a path goes on from there. Points so near to each other that no factor of their kernel matrix
// is sound do it no harm. Moves pairs until no two e are further apart than `gap`, or so many have moved.
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
    std::vector<int> support;
    coefficients.clear();
    for (int i = 0; i < n; ++i)
      if (c[i] != 0) support.push_back(i), coefficients.push_back(c[i]);
    f.assign(gram.n, 0.0);
    sum(support, coefficients, f);
    for (int i = 0; i < n; ++i) e[i] = s.points[i].level - f[rows[i]];
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
  for (int i = 0; i < n; ++i) {
    Point &p = s.points[i];
    p.alpha = std::fabs(c[i]);
    p.f = f[p.row], p.was = c[i];
    p.g = p.y * (p.f + s.b - p.level);
    p.side = c[i] == 0 ? INSIDE : p.alpha < p.bound ? MARGIN : OUTSIDE;
  }
  s.members.clear();
  s.factor.k = 0;
  s.factored = false;
}

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
  bool anywhere = !s.factored;
  if (anew) {
    std::vector<Point> points = after;
    for (size_t i = 0, at = 0; i < n; ++i)
      if (!leaves[i]) points[at++].alpha = s.points[i].alpha;
    s.points.swap(points);
  } else {
    s.points.insert(s.points.end(), after.end() - n_new, after.end());
  }
  Path path(gram, s, seed);
  path.prepare();
  if (anew) {
    path.fit();
  } else {
    size_t at = 0;
    for (size_t i = 0; i < n; ++i) {
      Point &p = s.points[i];
      if (leaves[i]) {
        path.remove(i);
        continue;
      }
      anywhere |= p.level != after[at].level;
      p.level = after[at].level;
      p.final = after[at++].final;
      if (p.side == INSIDE || (p.side == MARGIN && p.final >= p.bound)) p.bound = p.final;
      p.rate = p.final - p.bound;
    }
    double imbalance, tolerance;
    path.worst(imbalance, tolerance);
    path.from_scratch = ++s.looks >= FRESH || tolerance > PROMISE;  // rounding would add up
    path.add(n);
    if (anywhere) path.start_anywhere(0);
    else path.start();
    path.solve();
  }
  if (path.from_scratch) s.looks = 0;
  s.points.shrink_to_fit();
  s.factor.forget();
  return s;
}

Solution Solution::rescaled(double ratio, double lift) const {
  Solution other = *this;
  for (auto &p : other.points) {
    for (double *v : {&p.alpha, &p.g, &p.bound, &p.final, &p.f, &p.was, &p.level}) *v *= ratio;
    p.level += lift;
  }
  other.b = b * ratio + lift, other.total = total * ratio, other.residual = residual * ratio;
  return other;
}

// --- for Python ---------------------------------------------------------------------------------------------------

namespace {

typedef In<double, 1> Vector;
typedef In<int64_t, 1> Slots;

std::vector<Point> points(Slots rows, Vector y, Vector level, Vector bound) {
  std::vector<Point> found(y.shape(0));
  for (size_t i = 0; i < found.size(); ++i) {
    Point &p = found[i];
    p.row = i < rows.size() ? rows.data()[i] : 0, p.y = y.data()[i], p.level = level.data()[i], p.bound = p.final = bound.data()[i];
  }
  return found;
}

// Slots of the points before and of those afterwards; the numbers of these, in the order in which they stay and come.
Solution change(Gram &gram, const Solution &before, Slots slots, Slots gone, Slots rows, Vector y, Vector level,
                Vector bound, double total, uint64_t seed) {
  Solution s = before;
  for (size_t i = 0; i < s.points.size(); ++i) s.points[i].row = slots.data()[i];
  return changed(gram, std::move(s), std::vector<int>(gone.data(), gone.data() + gone.shape(0)),
                 points(rows, y, level, bound), total, seed);
}

// A solution that was found elsewhere; the next path makes its factor.
Solution restored(Vector y, Vector level, Vector bound, Vector alpha, double b, double total,
                  double residual) {
  Solution s;
  s.points = points({}, y, level, bound);
  s.b = b, s.total = total, s.residual = residual, s.factored = false, s.looks = FRESH;  // nothing is taken on trust
  for (size_t i = 0; i < s.points.size(); ++i) {
    Point &p = s.points[i];
    p.alpha = alpha.data()[i];
    p.side = p.alpha <= 0 ? INSIDE : p.alpha >= p.bound ? OUTSIDE : MARGIN;
  }
  return s;
}

template <class F> auto each(F value) {
  return [value](const Solution &s) {
    double *out = new double[s.points.size() + 1];
    for (size_t i = 0; i < s.points.size(); ++i) out[i] = value(s.points[i]);
    return nb::ndarray<nb::numpy, double, nb::ndim<1>>(out, {s.points.size()}, nb::capsule(out, [](void *p) noexcept {
                                                         delete[] (double *)p;
                                                       }));
  };
}

}  // namespace

void bind_path(nb::module_ &m) {
  nb::class_<Gram>(m, "Gram")
      .def("__init__", [](Gram *self, int kind, double gamma, double r, int degree, int64_t width, int64_t memory,
                          std::string refusal, nb::object function) {
        new (self) Gram({Kernel::Kind(kind), gamma, r, degree}, width, memory, refusal, function);
      }, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("place", &Gram::place, nb::call_guard<nb::gil_scoped_release>())
      .def("erase", &Gram::erase, nb::call_guard<nb::gil_scoped_release>())
      .def("fill", &Gram::fill, nb::call_guard<nb::gil_scoped_release>())
      .def("count", &Gram::count)
      .def("between", &Gram::between, nb::call_guard<nb::gil_scoped_release>())
      .def("combined", &Gram::combined, nb::call_guard<nb::gil_scoped_release>())
      .def("diagonal", [](Gram &gram, In<int64_t, 1> at, Out<double, 1> out) {
        for (size_t i = 0; i < at.shape(0); ++i) out.data()[i] = gram.diagonal[at.data()[i]];
      })
      .def_rw("memory", &Gram::memory)
      .def_ro("n", &Gram::n)
      .def_ro("held", &Gram::held)
      .def_ro("computed", &Gram::computed);
  nb::class_<Solution>(m, "Solution")
      .def(nb::init<>())
      .def("__len__", [](const Solution &s) { return s.points.size(); })
      .def_prop_ro("alpha", each([](const Point &p) { return p.alpha; }), nb::rv_policy::take_ownership)
      .def_prop_ro("slopes", each([](const Point &p) { return p.g; }), nb::rv_policy::take_ownership)
      .def_prop_ro("bounds", each([](const Point &p) { return p.bound; }), nb::rv_policy::take_ownership)
      .def_prop_ro("sides", each([](const Point &p) { return p.side; }), nb::rv_policy::take_ownership)
      .def_ro("b", &Solution::b)
      .def_ro("total", &Solution::total)
      .def_ro("residual", &Solution::residual)
      .def_ro("breakpoints", &Solution::breakpoints)
      .def_ro("restarts", &Solution::restarts)
      .def_ro("repairs", &Solution::repairs)
      .def("rescaled", &Solution::rescaled);
  def(m, "restored", restored);
  m.def("change", change, nb::call_guard<nb::gil_scoped_release>());
}
