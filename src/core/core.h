// What the files of the core share: whole numbers of 128 bits, views of NumPy's arrays, threads over rows.
//
// A wide number is two's complement in 64-bit limbs, the lowest first; an array of such numbers has
// its limbs in the first axis, so an int64 array is one limb. Nothing here rounds unless it says so.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

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

void bind_sums(nb::module_ &m);
void bind_solve(nb::module_ &m);
void bind_scores(nb::module_ &m);
