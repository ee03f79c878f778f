#include "lazy/lazy.h"

#include "python/interrupts.h"
#include "python/module.h"
#include "python/pybind.h"

namespace wick::python {
namespace {

py::dict asDict(const std::vector<lazy::Counters::Count>& counts) {
  py::dict made;
  for (const auto& [what, times] : counts) made[py::str(what)] = times;
  return made;
}

py::dict countersAsDict() {
  const lazy::Counters found = lazy::counters();
  py::dict made;
  made["recorded"] = found.recorded;
  made["evaluations"] = found.evaluations;
  made["compiled"] = found.compiled;
  made["found"] = found.found;
  made["followed"] = found.followed;
  made["rolled"] = found.rolled;
  made["causes"] = asDict(found.causes);
  made["immediate"] = asDict(found.immediate);
  return made;
}

}  // namespace

void addLazy(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_lazy_set_device",
        [](const std::string& device) { lazy::setDevice(Device::parse(device)); });
  m.def("_lazy_device", [] { return lazy::device().str(); });
  m.def("_lazy_mark_step", [] {
    const Interruptible interruptible;
    withoutGil(lazy::markStep);
  });
  m.def("_lazy_freeze_step", [] { withoutGil(lazy::freezeStep); });
  m.def("_lazy_thaw_step", lazy::thawStep);
  m.def("_lazy_counters", countersAsDict);
  m.def("_lazy_reset_counters", lazy::resetCounters);
  m.def("_lazy_report", lazy::report);
  m.def("_lazy_dump", lazy::dump);
  m.def("_lazy_dump_dot", lazy::dumpDot);
  m.def("_lazy_set_cache_size", lazy::setCacheSize);
  m.def("_lazy_set_rolling", lazy::setRolling);
}

}  // namespace wick::python
