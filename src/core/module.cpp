// traceless._core: the exact functions that Python has no fast form of. Those on whole numbers have a
// plain twin in traceless/arithmetic/plain.py, which says the same in Python's integers.
#include "core.h"

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // of what an exception that ends a program still refers to
  bind_sums(m);
  bind_solve(m);
  bind_scores(m);
  bind_symmetric(m);
  bind_kernels(m);
  bind_publish(m);
  bind_path(m);
}
