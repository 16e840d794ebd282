// The working set: for some breakpoints only points that may reach the margin soon are looked at.
//
// Time per breakpoint is reading the kernel values of the margin set with all points, most of which are far from it.
// The points that could reach it soonest are packed into a small matrix; later, g of the others catches up in one
// pass. A point that has crossed unseen gets a shift that decays, so that the path goes on from a valid point; at
// θ = 1 that is another path.
#include "path.h"

void Path::count_gone() {
  if (!window.open) return;
  for (auto [begin, end] : runs)
    for (int i = begin; i < end; ++i) window.gone[i] += (theta - window.mark) * push[i];
  window.mark = theta;
}

void Path::open_window() {
  const int n = s.points.size(), k = s.members.size();
  if (few >= n) return;  // most points have gone
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
