#include "core.h"

void bind_solve(nb::module_ &) {}
