// The kernel matrix of the rows of a model, as far as it is asked for and memory allows.
//
// Rows have slots, and a slot has a line: the kernel values of its row with all others. NaN stands where no
// value was computed yet. A line is made when it is first needed, and beyond the memory allowed the one not
// used for longest gives way. All binary problems of a model read the same lines, each its own part of them.
#pragma once

#include "kernels.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <new>
#include <string>

typedef std::vector<std::pair<int, int>> Runs;  // slots from the first to before the second, in rising order

// The runs of the slots that are used; short gaps are part of them.
Runs runs_of(const std::vector<char> &used);

struct NoRoom : std::bad_alloc {  // Python's MemoryError
  const char *what() const noexcept override { return "the kernel values of the margin set do not fit: raise `memory`"; }
};

class Gram {
 public:
  Gram(Kernel kernel, int64_t width, int64_t memory, std::string refusal, nb::object function);
  Gram(const Gram &) = delete;
  void place(In<double, 2> X, In<int64_t, 1> slots);
  void erase(In<int64_t, 1> slots);
  void fill(int threads);
  int64_t count(double number) const;

  // The line of a slot, with values at least for the slots of some runs.
  const double *line(int slot, const Runs &runs);
  // The line of a slot if it is there, as it is.
  const double *known(int slot) {
    if (lines[slot].values) lines[slot].used = ++clock;
    return lines[slot].values.get();
  }
  // out_ij = k(a_i, b_j).
  void between(In<int64_t, 1> a, In<int64_t, 1> b, Out<double, 2> out);
  // Lines asked for from here on stay where they are until the next call.
  void hold() { mark = clock; }
  // out += Σ_i c_i line_i, four lines at a time, in order; with twice the digits where there is a low part.
  void add(const std::vector<int> &slots, const std::vector<double> &c, const Runs &runs, double *out,
           double *low = nullptr);
  // The row in a slot, without the centre of a linear kernel.
  const double *row(int slot) const { return &rows[size_t(slot) * width]; }
  // The kernel values of two rows, or of one with some.
  void values(int slot, const int64_t *others, int64_t n, double *out);

  static void check_signals();  // raises what the user has interrupted by

  int n = 0;  // slots up to the last that was ever used
  std::vector<double> diagonal;
  const int64_t width;
  int64_t memory;
  int64_t held = 0, computed = 0;  // lines, and kernel values so far

 private:
  struct Line {
    std::unique_ptr<double[]> values;
    int size = 0;
    bool whole = false;  // whether it has all values but those of rows that were placed since `seen`
    size_t seen = 0;
    int64_t used = 0;
  };
  double *room(Line &line);
  int64_t most() const { return std::max<int64_t>(4, memory / (8 * std::max(1, capacity))); }
  void compute(int slot, const std::vector<int> &missing, double *out, bool reuse);
  void check(int slot, int other, double k) const;

  Kernel kernel;
  nb::object function;  // of one row and several, for kernels that are not computed here
  std::string refusal;  // of rows that show a kernel not to be positive; empty where it surely is
  int capacity = 0;
  std::vector<double> rows, gathered, result;
  std::vector<char> filled;
  std::vector<Line> lines;
  std::vector<int> placed, missing;  // slots in the order in which rows came; scratch
  std::vector<double> scratch[4];
  int64_t clock = 0, mark = 0;
};

// out[j] += Σ_i c_i lines_i[j], the terms of four lines in one sum: the order of the bits that are published.
void add_lines(const double *const *lines, const double *c, int k, double *out, int64_t begin, int64_t end);
// The same, exact to about twice the digits: high + low is the sum.
void add_lines_twofold(const double *const *lines, const double *c, int k, double *high, double *low, int64_t begin,
                       int64_t end);
