#include "distributed/gradient_exchange.h"
#include "distributed/group.h"
#include "distributed/init.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "python/pybind.h"
#include "python/tracing.h"

namespace wick::python {
namespace {

using distributed::GradientExchange;

std::vector<Tensor> tensorsOf(const py::iterable& given) {
  std::vector<Tensor> made;
  for (const py::handle& one : given) made.push_back(tensorOf(one.ptr(), "GradientExchange"));
  return made;
}

void init() {
  const Interruptible interruptible;
  withoutGil(distributed::init);
}

void barrier() {
  const Interruptible interruptible;
  const WithoutGil others;
  distributed::theGroup()->barrier();
}

void broadcast(const py::handle& tensor, int root) {
  const Tensor t = tensorOf(tensor.ptr(), "broadcast");
  noteLazyPlace();
  const Interruptible interruptible;
  const WithoutGil others;
  distributed::theGroup()->broadcast(t, root);
}

std::unique_ptr<GradientExchange> makeExchange(const py::iterable& parameters) {
  const std::vector<Tensor> tensors = tensorsOf(parameters);
  noteLazyPlace();
  const Interruptible interruptible;
  const WithoutGil others;
  return std::make_unique<GradientExchange>(tensors);
}

void finish(GradientExchange& exchange) {
  noteLazyPlace();
  const Interruptible interruptible;
  const WithoutGil others;
  exchange.finish();
}

}  // namespace

void addDistributed(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_distributed_init", init);
  m.def("_distributed_shutdown", [] { withoutGil(distributed::shutdown); });
  m.def("_distributed_is_initialized", [] { return distributed::currentGroup() != nullptr; });
  m.def("_distributed_rank", [] { return distributed::theGroup()->rank(); });
  m.def("_distributed_size", [] { return distributed::theGroup()->size(); });
  m.def("_distributed_barrier", barrier);
  m.def("_distributed_broadcast", broadcast);
  m.def("_GradientExchange", makeExchange);
  py::class_<GradientExchange> exchange(m, "_GradientExchangeObject");
  forbidNew(exchange);
  exchange.def("finish", finish).def("set_active", &GradientExchange::setActive);
}

}  // namespace wick::python
