#include "core.h"

void bind_sums(nb::module_ &) {}
