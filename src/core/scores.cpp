#include "core.h"

void bind_scores(nb::module_ &) {}
