// What the files of the core share: whole numbers of 128 bits, views of NumPy's arrays, threads over rows.
//
// A wide number is two's complement in 64-bit limbs, the lowest first; an array of such numbers has
// its limbs in the first axis, so an int64 array is one limb. Nothing here rounds unless it says so.
#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

// A function that is compiled for several processors, where the linker can choose among them.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDEST
#endif

#define INLINE __attribute__((always_inline)) inline  // and what it calls, for each of them

namespace nb = nanobind;

typedef __int128 i128;
typedef unsigned __int128 u128;

template <class T, int D> using In = nb::ndarray<const T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const uint64_t, nb::ndim<3>, nb::device::cpu>;  // limbs; each row without gaps
template <class T, int D> using Out = nb::ndarray<T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;

// Calls f(first, last) for parts of the rows 0 to n, in so many threads: rows share nothing, so
// their number has no effect on what is computed.
template <class F> void over_rows(int64_t n, int threads, F f) {
  if (threads <= 1 || n < 2) return f(int64_t(0), n);
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(f, n * t / threads, n * (t + 1) / threads);
  f(int64_t(0), n / threads);
  for (auto &other : others) other.join();
}

// Binds a function that needs no lock of Python's. What is written to must be given as it is.
inline auto argument(const void *) { return nb::arg(); }
template <class T> auto argument(const std::optional<T> *) { return nb::arg().none(); }
template <class T, class... A> auto argument(const nb::ndarray<T, A...> *) { return nb::arg().noconvert(); }
template <class T, class... A> auto argument(const nb::ndarray<const T, A...> *) { return nb::arg(); }
template <class R, class... A> void def(nb::module_ &m, const char *name, R (*f)(A...)) {
  m.def(name, f, argument((const A *)nullptr)..., nb::call_guard<nb::gil_scoped_release>());
}

// One or two limbs each, as numbers modulo 2^64 or 2^128.
template <class T> struct Limbs {
  T *low, *high;
  template <class A>
  explicit Limbs(const A &a) : low(a.data()), high(a.shape(0) > 1 ? a.data() + a.stride(0) : nullptr) {}
  i128 operator[](int64_t i) const { return high ? i128(u128(high[i]) << 64 | low[i]) : i128(int64_t(low[i])); }
  template <class N> N get(int64_t i) const {
    if constexpr (sizeof(N) == 8) return low[i];
    else return N((*this)[i]);
  }
  // Writes a number; whether it and its negative fit.
  bool put(int64_t i, uint64_t v) const { return low[i] = v, v != uint64_t(1) << 63; }
  bool put(int64_t i, u128 v) const {
    low[i] = uint64_t(v);
    if (!high) return i128(v) == int64_t(v) && v != u128(-(i128(1) << 63));
    return high[i] = uint64_t(v >> 64), v != u128(1) << 127;
  }
  // Adds modulo 2^64 or 2^128.
  void add(int64_t i, uint64_t v) const { low[i] += v; }
  void add(int64_t i, u128 v) const { put(i, u128((*this)[i]) + v); }
};
using Numbers = Limbs<const uint64_t>;
using Places = Limbs<uint64_t>;

double nearest(uint64_t *v, int n, int64_t E);
void bind_sums(nb::module_ &m);
void bind_solve(nb::module_ &m);
void bind_scores(nb::module_ &m);
void bind_symmetric(nb::module_ &m);
void bind_kernels(nb::module_ &m);
void bind_publish(nb::module_ &m);
void bind_path(nb::module_ &m);
