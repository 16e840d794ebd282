// From breakpoint to breakpoint: a direction, the first event along it, and what that does.
#include "path.h"

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
