#include "gram.h"

#include <limits>

namespace {

const double NONE = std::numeric_limits<double>::quiet_NaN();
const double LARGEST = 1e290;  // kernel value: there must be room for sums
const int GAP = 16;            // slots that are not used, and yet computed, between some that are
const int LINES = 64;          // computed at once
const int WIDE_ROWS = 64;      // columns from which on it is faster to look a value up than to compute it

INLINE void add_each(const double *const *lines, const double *c, int k, double *__restrict out, int64_t begin,
                     int64_t end) {
  int i = 0;
  for (; i + 4 <= k; i += 4) {
    const double *a = lines[i], *b = lines[i + 1], *d = lines[i + 2], *e = lines[i + 3];
    const double p = c[i], q = c[i + 1], r = c[i + 2], s = c[i + 3];
    for (int64_t j = begin; j < end; ++j) out[j] += p * a[j] + q * b[j] + r * d[j] + s * e[j];
  }
  for (; i < k; ++i) {
    const double *a = lines[i], p = c[i];
    for (int64_t j = begin; j < end; ++j) out[j] += p * a[j];
  }
}

// Products and sums with what their rounding leaves out (Dekker 1971, Knuth 1969).
INLINE void add_product(double p, double a, double &high, double &low) {
  const double t = p * a, s = high + t, z = s - high;
  low += (high - (s - z)) + (t - z) + __builtin_fma(p, a, -t);
  high = s;
}

INLINE void add_twofold(const double *const *lines, const double *c, int k, double *__restrict high,
                        double *__restrict low, int64_t begin, int64_t end) {
  int i = 0;
  for (; i + 4 <= k; i += 4) {
    const double *a = lines[i], *b = lines[i + 1], *d = lines[i + 2], *e = lines[i + 3];
    const double p = c[i], q = c[i + 1], r = c[i + 2], s = c[i + 3];
    for (int64_t j = begin; j < end; ++j) {
      double h = high[j], l = low[j];
      add_product(p, a[j], h, l);
      add_product(q, b[j], h, l);
      add_product(r, d[j], h, l);
      add_product(s, e[j], h, l);
      high[j] = h, low[j] = l;
    }
  }
  for (; i < k; ++i)
    for (int64_t j = begin; j < end; ++j) add_product(c[i], lines[i][j], high[j], low[j]);
}

#define ADD(ISA, TARGET)                                                                                       \
  TARGET void add_each##ISA(const double *const *lines, const double *c, int k, double *out, int64_t begin,    \
                            int64_t end) { add_each(lines, c, k, out, begin, end); }                           \
  TARGET void add_twofold##ISA(const double *const *lines, const double *c, int k, double *high, double *low,  \
                               int64_t begin, int64_t end) { add_twofold(lines, c, k, high, low, begin, end); }
FOR_VECTORS(ADD)
const auto fastest = FASTEST(add_each);
const auto fastest_twofold = FASTEST(add_twofold);

}  // namespace

void add_lines(const double *const *lines, const double *c, int k, double *out, int64_t begin, int64_t end) {
  fastest(lines, c, k, out, begin, end);
}

void add_lines_twofold(const double *const *lines, const double *c, int k, double *high, double *low, int64_t begin,
                       int64_t end) {
  fastest_twofold(lines, c, k, high, low, begin, end);
}

Runs runs_of(const std::vector<char> &used) {
  const int n = used.size();
  Runs runs;
  for (int i = 0; i < n; ++i) {
    if (!used[i]) continue;
    const int end = i + 1 < n - GAP ? i + 1 : n;
    if (runs.empty()) runs.push_back({i < GAP ? 0 : i, end});
    else if (i - runs.back().second < GAP) runs.back().second = end;
    else runs.push_back({i, end});
  }
  return runs;
}

Gram::Gram(Kernel kernel, int64_t width, int64_t memory, std::string refusal, nb::object function)
    : width(width), memory(memory), kernel(kernel), function(function), refusal(refusal) {}

// Writes rows into slots that are free.
void Gram::place(In<double, 2> X, In<int64_t, 1> slots) {
  const int64_t m = slots.shape(0);
  int last = n;
  for (int64_t i = 0; i < m; ++i) last = std::max<int>(last, slots.data()[i] + 1);
  if (last > capacity) {
    capacity = n ? last + std::max(64, last / 8) : last;  // most models are never updated
    rows.resize(size_t(capacity) * width);
    diagonal.resize(capacity);
    filled.resize(capacity);
    lines.resize(capacity);
  }
  n = last;
  if (placed.size() > size_t(capacity)) {  // lines that are not whole are looked through when they are used
    for (auto &line : lines) line.whole = false;
    placed.clear();
  }
  for (int64_t i = 0; i < m; ++i) {
    const int slot = slots.data()[i];
    std::copy_n(X.data() + i * width, width, &rows[size_t(slot) * width]);
    filled[slot] = true;
    const int64_t own = slot;
    values(slot, &own, 1, &diagonal[slot]);
    if (!(std::fabs(diagonal[slot]) <= LARGEST))
      throw std::overflow_error("Kernel values of rows, or sums of them, are beyond float64: scale the columns, for "
                                "example with sklearn.preprocessing.StandardScaler.");
    placed.push_back(slot);
  }
}

// Leaves nothing of the rows in these slots.
void Gram::erase(In<int64_t, 1> slots) {
  const int64_t m = slots.shape(0);
  for (int64_t i = 0; i < m; ++i) {
    const int slot = slots.data()[i];
    if (lines[slot].values) --held;
    if (lines[slot].values) std::fill_n(lines[slot].values.get(), lines[slot].size, 0.0);
    lines[slot] = Line();
    std::fill_n(&rows[size_t(slot) * width], width, 0.0);
    filled[slot] = false;
    diagonal[slot] = 0;
  }
  for (int s = 0; s < n; ++s)
    for (int64_t i = 0; i < m && lines[s].values; ++i)
      if (slots.data()[i] < lines[s].size) lines[s].values[slots.data()[i]] = NONE;
  std::fill(gathered.begin(), gathered.end(), 0.0);
  std::fill(result.begin(), result.end(), 0.0);
  for (auto &some : scratch) std::fill(some.begin(), some.end(), 0.0);
}

// How often a number is kept, of rows or of lines: what is forgotten is nowhere.
int64_t Gram::count(double number) const {
  int64_t found = std::count(rows.begin(), rows.end(), number) + std::count(gathered.begin(), gathered.end(), number) +
                  std::count(result.begin(), result.end(), number);
  for (auto &line : lines) found += std::count(line.values.get(), line.values.get() + line.size, number);
  for (auto &some : scratch) found += std::count(some.begin(), some.end(), number);
  return found;
}

double *Gram::room(Line &line) {
  if (line.size >= n) return line.values.get();
  if (!line.values) {
    while (held >= most()) {
      Line *oldest = nullptr;
      for (auto &other : lines)
        if (other.values && other.used <= mark && (!oldest || other.used < oldest->used)) oldest = &other;
      if (!oldest) throw NoRoom();
      *oldest = Line();
      --held;
    }
    ++held;
  }
  std::unique_ptr<double[]> larger(new double[capacity]);
  std::copy_n(line.values.get(), line.size, larger.get());
  std::fill(larger.get() + line.size, larger.get() + capacity, NONE);
  line.values = std::move(larger);
  line.size = capacity;
  return line.values.get();
}

const double *Gram::line(int slot, const Runs &runs) {
  Line &own = lines[slot];
  double *out = room(own);
  own.used = ++clock;
  missing.clear();
  if (own.whole) {
    missing.assign(placed.begin() + own.seen, placed.end());
    own.seen = placed.size();
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    compute(slot, missing, out, true);
    return out;
  }
  for (auto [begin, end] : runs)
    for (int s = begin; s < end; ++s)
      if (std::isnan(out[s]) && filled[s]) missing.push_back(s);
  compute(slot, missing, out, width >= WIDE_ROWS || !function.is_none());
  own.whole = runs.size() == 1 && runs[0].first == 0 && runs[0].second == n;
  own.seen = placed.size();
  return out;
}

// Kernel values of a row with those in other slots, looked up where that is allowed and they are known.
void Gram::compute(int slot, const std::vector<int> &wanted, double *out, bool reuse) {
  std::vector<int64_t> left;
  left.reserve(wanted.size());
  for (int s : wanted) {
    if (!filled[s]) continue;
    const Line &other = lines[s];
    const double known = reuse && s != slot && slot < other.size ? other.values[slot] : NONE;
    if (std::isnan(known)) left.push_back(s);
    else out[s] = known;
  }
  if (left.empty()) return;
  if (function.is_none() && left.back() - left.front() + 1 == int64_t(left.size())) {
    values(slot, left.data(), left.size(), out + left.front());
    return;
  }
  result.resize(left.size());
  values(slot, left.data(), left.size(), result.data());
  for (size_t i = 0; i < left.size(); ++i) out[left[i]] = result[i];
}

void Gram::values(int slot, const int64_t *others, int64_t m, double *out) {
  const double *x = &rows[size_t(slot) * width], *B = &rows[size_t(others[0]) * width];
  computed += m;
  if (!function.is_none() || others[m - 1] - others[0] + 1 != m) {
    gathered.resize(std::max<size_t>(gathered.size(), m * width));
    for (int64_t i = 0; i < m; ++i) std::copy_n(&rows[size_t(others[i]) * width], width, &gathered[i * width]);
    B = gathered.data();
  }
  if (!function.is_none()) {
    nb::gil_scoped_acquire gil;
    typedef nb::ndarray<nb::numpy, const double, nb::ndim<2>> Rows;
    size_t one[] = {1, size_t(width)}, many[] = {size_t(m), size_t(width)};
    nb::object found = function(Rows(x, 2, one, nb::handle()).cast(nb::rv_policy::copy),
                                Rows(B, 2, many, nb::handle()).cast(nb::rv_policy::copy));
    auto result = nb::cast<In<double, 1>>(found);
    if (int64_t(result.shape(0)) != m) throw std::invalid_argument("a kernel returned too few values");
    std::copy_n(result.data(), m, out);
  } else {
    ::line(kernel, x, B, m, width, out);
  }
  for (int64_t i = 0; i < m; ++i) check(slot, others[i], out[i]);
}

// k(x, x) ≥ 0 and k(x, z)² ≤ k(x, x) k(z, z): necessary for a kernel that is positive, not sufficient.
void Gram::check(int slot, int other, double k) const {
  if (refusal.empty()) return;
  const double a = other == slot ? k : diagonal[slot], b = other == slot ? a : diagonal[other];
  const double limit = std::max(a, 0.0) * std::max(b, 0.0) * (1 + 1e-6) + 1e-12 * std::max(a * a, b * b);
  if (a < 0 || b < 0 || k * k > limit) throw std::domain_error(refusal);
}

// Computes all lines, each value once, where rows are so wide that this is much faster than line by line.
void Gram::fill(int threads) {
  if (!function.is_none() || width < WIDE_ROWS || 8 * int64_t(capacity) * n > memory) return;
  for (int s = 0; s < n; ++s)
    if (filled[s]) room(lines[s]);
  std::vector<double> block(size_t(LINES) * n);
  for (int first = 0; first < n; first += LINES) {
    const int last = std::min(n, first + LINES);
    over_rows(last - first, threads, [&](int64_t begin, int64_t end) {
      kernel_values(kernel, {&rows[(first + begin) * width], width, 1}, end - begin, {rows.data(), width, 1}, last, width,
                    &block[begin * last], last);
    });
    for (int j = 0; j < last; ++j)
      for (int i = std::max(j, first); i < last && filled[j]; ++i) {
        if (!filled[i]) continue;
        const double k = block[size_t(i - first) * last + j];
        check(i, j, k);
        lines[i].values[j] = lines[j].values[i] = k;
      }
  }
  for (auto &line : lines) line.whole = bool(line.values), line.seen = placed.size();
  computed += int64_t(n) * n;
}

void Gram::add(const std::vector<int> &slots, const std::vector<double> &c, const Runs &runs, double *out,
               double *low) {
  const double *four[4];
  const int k = slots.size();
  for (int i = 0; i < k; i += 4) {
    const int some = std::min(4, k - i);
    hold();
    for (int j = 0; j < some; ++j) {
      const int slot = slots[i + j];
      if (lines[slot].values || held < most()) {
        four[j] = line(slot, runs);
        continue;
      }
      auto &own = scratch[j];  // of a line there is no room for
      own.assign(n, NONE);
      missing.clear();
      for (auto [begin, end] : runs)
        for (int s = begin; s < end; ++s) missing.push_back(s);
      compute(slot, missing, own.data(), !function.is_none());
      four[j] = own.data();
    }
    for (auto [begin, end] : runs)
      if (low) add_lines_twofold(four, &c[i], some, out, low, begin, end);
      else add_lines(four, &c[i], some, out, begin, end);
  }
}

void Gram::between(In<int64_t, 1> a, In<int64_t, 1> b, Out<double, 2> out) {
  std::vector<char> used(n);
  for (size_t j = 0; j < b.shape(0); ++j) used[b.data()[j]] = true;
  const Runs runs = runs_of(used);
  hold();
  for (size_t i = 0; i < a.shape(0); ++i) {
    const double *own = line(a.data()[i], runs);
    for (size_t j = 0; j < b.shape(0); ++j) out.data()[i * b.shape(0) + j] = own[b.data()[j]];
    hold();
  }
}

void Gram::check_signals() {
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals()) throw nb::python_error();
}
