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

#include "margin.h"

#include <random>

const double RESTARTS[] = {1e-2, 1.0};  // sizes of the random shifts with which a path that stalls is restarted
const int ROUNDS = 2;                   // of repairs: from there, with random shifts, by pairs

// When what is faster: measured, and of no effect on the solution.
const int MANY = 1000, PART = 32;       // points from which on a working set pays; the part of them that it is
const int LONGEST = 100;                // breakpoints with one working set
const double SHORT = 0.02, BOLD = 3.0;  // of the rest of the path: the least it must last; how far it is trusted
const int ENOUGH = 200, PAIRS = 50;     // points from which on pairs may be faster than a path; pairs for each
const double LARGE = 1.0 / 8, BREAK_EVEN = 0.6, EASY = 10.0;  // see `better_refitted`

const double INF = INFINITY;

enum Side { INSIDE, MARGIN, OUTSIDE, LEAVING };  // α = 0; g = 0; α = u; to be removed: α = u whatever g

struct Point {
  double y, level;          // sign, and t
  double alpha = 0, g = 0;
  double bound = 0, final = 0, rate = 0;  // u, its value at θ = 1, and how fast it gets there
  double shift = 0;
  double f = 0;             // without b
  Twofold bounds;           // the part of f that points at their bounds have; carried from path to path, as if exact
  double carried = 0;       // its own y α in that part
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
  bool exact = false;        // whether α of the margin set and b are the exact solution of its equations, rounded
  int64_t breakpoints = 0, restarts = 0, repairs = 0;

  Solution rescaled(double ratio, double lift) const;  // of ratio · f + lift
};

// The middle of the interval between two limits, as in LIBSVM; of half a line its end.
inline double middle(double low, double high) {
  if (std::isinf(low)) return std::isinf(high) ? 0.0 : high;
  return std::isinf(high) ? low : 0.5 * (low + high);
}

// A path: it takes a solution from what it is to what it should be.
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
  Values kernel_values(const std::vector<int> &points);
  double drift(const Point &p) const { return p.y * push[p.row] - p.shift; }
  void sum(const std::vector<int> &points, const std::vector<double> &c, std::vector<double> &out);
  void measure();
  void carry_bounds();
  void solve_margin();
  void compute_g();
  void centre();
  void drop_leaving();
  void make_factor();

  bool missed();
  bool follow_path();
  bool follow_once();
  bool follow();
  // Solves the bordered system of the margin set for values of its points, and Σx = q; returns t.
  template <class F> double solve_for(F value, double q) {
    Factor &R = s.factor;
    if (!kept) {
      for (int i = 0; i < R.k; ++i) R.v[i] = value(s.points[s.members[i]]), R.ones[i] = 1;
      R.forward(R.v.data(), R.ones.data());
    }
    return R.solve(q);
  }
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

// The solution without the points in the places that are gone. Rows, y, levels and bounds are those of the points
// afterwards: first those that stay, in order, then those that come.
Solution changed(Gram &gram, Solution before, const std::vector<int> &gone, const std::vector<Point> &after,
                 double total, uint64_t seed);
