// What Python sees of kernel matrices and solutions.
#include "path.h"

namespace {

typedef In<double, 1> Vector;
typedef In<int64_t, 1> Slots;

std::vector<Point> points(Slots rows, Vector y, Vector level, Vector bound) {
  std::vector<Point> found(y.shape(0));
  for (size_t i = 0; i < found.size(); ++i) {
    Point &p = found[i];
    p.row = rows.data()[i], p.y = y.data()[i], p.level = level.data()[i], p.bound = p.final = bound.data()[i];
  }
  return found;
}

// Slots of the points before and of those afterwards; the numbers of these, in the order in which they stay and come.
Solution change(Gram &gram, const Solution &before, Slots slots, Slots gone, Slots rows, Vector y, Vector level,
                Vector bound, double total, uint64_t seed) {
  Solution s = before;
  for (size_t i = 0; i < s.points.size(); ++i) s.points[i].row = slots.data()[i];
  return changed(gram, std::move(s), std::vector<int>(gone.data(), gone.data() + gone.shape(0)),
                 points(rows, y, level, bound), total, seed);
}

// A solution that was found elsewhere; the next path makes its factor.
Solution restored(Slots rows, Vector y, Vector level, Vector bound, Vector alpha, double b, double total,
                  double residual) {
  Solution s;
  s.points = points(rows, y, level, bound);
  s.b = b, s.total = total, s.residual = residual, s.factored = false;
  for (size_t i = 0; i < s.points.size(); ++i) {
    Point &p = s.points[i];
    p.alpha = alpha.data()[i];
    p.side = p.alpha <= 0 ? INSIDE : p.alpha >= p.bound ? OUTSIDE : MARGIN;
  }
  return s;
}

template <class F> auto each(F value) {
  return [value](const Solution &s) {
    double *out = new double[s.points.size() + 1];
    for (size_t i = 0; i < s.points.size(); ++i) out[i] = value(s.points[i]);
    return nb::ndarray<nb::numpy, double, nb::ndim<1>>(out, {s.points.size()}, nb::capsule(out, [](void *p) noexcept {
                                                         delete[] (double *)p;
                                                       }));
  };
}

}  // namespace

void bind_path(nb::module_ &m) {
  nb::class_<Gram>(m, "Gram")
      .def("__init__", [](Gram *self, int kind, double gamma, double r, int degree, int64_t width, int64_t memory,
                          std::string refusal, nb::object function) {
        new (self) Gram({Kernel::Kind(kind), gamma, r, degree}, width, memory, refusal, function);
      }, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("place", &Gram::place, nb::call_guard<nb::gil_scoped_release>())
      .def("erase", &Gram::erase, nb::call_guard<nb::gil_scoped_release>())
      .def("fill", &Gram::fill, nb::call_guard<nb::gil_scoped_release>())
      .def("count", &Gram::count)
      .def("between", &Gram::between, nb::call_guard<nb::gil_scoped_release>())
      .def("diagonal", [](Gram &gram, In<int64_t, 1> at, Out<double, 1> out) {
        for (size_t i = 0; i < at.shape(0); ++i) out.data()[i] = gram.diagonal[at.data()[i]];
      })
      .def_rw("memory", &Gram::memory)
      .def_ro("n", &Gram::n)
      .def_ro("held", &Gram::held)
      .def_ro("computed", &Gram::computed);
  nb::class_<Solution>(m, "Solution")
      .def(nb::init<>())
      .def("__len__", [](const Solution &s) { return s.points.size(); })
      .def_prop_ro("alpha", each([](const Point &p) { return p.alpha; }), nb::rv_policy::take_ownership)
      .def_prop_ro("slopes", each([](const Point &p) { return p.g; }), nb::rv_policy::take_ownership)
      .def_prop_ro("bounds", each([](const Point &p) { return p.bound; }), nb::rv_policy::take_ownership)
      .def_prop_ro("sides", each([](const Point &p) { return p.side; }), nb::rv_policy::take_ownership)
      .def_ro("b", &Solution::b)
      .def_ro("total", &Solution::total)
      .def_ro("residual", &Solution::residual)
      .def_ro("breakpoints", &Solution::breakpoints)
      .def_ro("restarts", &Solution::restarts)
      .def_ro("repairs", &Solution::repairs)
      .def("rescaled", &Solution::rescaled);
  def(m, "restored", restored);
  m.def("change", change, nb::call_guard<nb::gil_scoped_release>());
}
