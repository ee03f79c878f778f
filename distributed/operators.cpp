// Operators over the processes of the current group: torch.ops.wick.all_reduce and its two halves,
// between which a program computes.
#include <algorithm>

#include "autograd/formula.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "distributed/group.h"
#include "ir/device_kernels.h"
#include "ir/shape_facts.h"
#include "lazy/effects.h"
#include "runtime/ops/boxing.h"

namespace wick::distributed {

namespace {

Tensor begin(const Tensor& self, const std::string& reduction) {
  return Tensor::scalar(theGroup()->beginAllReduce(self, reduction));
}
Tensor beginBundle(const std::vector<Tensor>& tensors, const std::string& reduction) {
  return Tensor::scalar(theGroup()->beginAllReduce(tensors, reduction));
}

std::vector<Tensor> endBundle(const std::vector<Tensor>& like, const Tensor& ticket) {
  WICK_CHECK(ticket.defined() && ticket.dtype() == DType::Long && ticket.numel() == 1,
             "all_reduce_end: expected what all_reduce_begin gave, got {}", ticket.describe());
  std::vector<Tensor> done = theGroup()->endBundle(moveTo(ticket, Device()).item<int64_t>());
  WICK_CHECK(done.size() == like.size(), "all_reduce_end: {} tensors were begun, not {}",
             done.size(), like.size());
  for (size_t i = 0; i < done.size(); ++i) {
    const bool same = like[i].defined() && std::ranges::equal(done[i].sizes(), like[i].sizes()) &&
                      done[i].dtype() == like[i].dtype();
    WICK_CHECK(same, "all_reduce_end: what was begun is {}, not {}", done[i].describe(),
               like[i].describe());
  }
  return done;
}
Tensor end(const Tensor& like, const Tensor& ticket) {
  return endBundle({like}, ticket)[0];
}

Tensor allReduce(const Tensor& self, const std::string& reduction) {
  const std::shared_ptr<Group> group = theGroup();
  return group->endAllReduce(group->beginAllReduce(self, reduction));
}

// ---- sizes alone ----

Tensor metaLike(const Tensor& t) {
  return Tensor::empty(t.sizes(), t.dtype(), Device{DeviceType::Meta, -1});
}
Tensor beginMeta(const Tensor&, const std::string&) {
  return Tensor::empty({}, DType::Long, Device{DeviceType::Meta, -1});
}
Tensor beginBundleMeta(const std::vector<Tensor>&, const std::string&) {
  return Tensor::empty({}, DType::Long, Device{DeviceType::Meta, -1});
}
std::vector<Tensor> endBundleMeta(const std::vector<Tensor>& like, const Tensor&) {
  std::vector<Tensor> made;
  for (const Tensor& t : like) made.push_back(metaLike(t));
  return made;
}
Tensor endMeta(const Tensor& like, const Tensor&) {
  return metaLike(like);
}
Tensor allReduceMeta(const Tensor& self, const std::string&) {
  return metaLike(self);
}

// ---- types ----

std::vector<TypePtr> likeFirst(const Node& node) {
  const TensorFacts* first = factsOf(node.input(0));
  if (!first) return nothingKnown(node);
  TensorFacts made = sameKind(*first);
  setSizes(made, sizesOf(*first));
  return oneTensor(made);
}

constexpr OperatorRecord kOperatorsRecords[] = {
    {"wick::all_reduce(Tensor self, str reduction=\"mean\") -> Tensor", WICK_KERNEL(allReduce),
     kSideEffects, likeFirst},
    {"wick::all_reduce_begin(Tensor self, str reduction=\"mean\") -> Tensor", WICK_KERNEL(begin),
     kSideEffects | kNotDifferentiable},
    {"wick::all_reduce_end(Tensor like, Tensor ticket) -> Tensor", WICK_KERNEL(end), kSideEffects,
     likeFirst},
    {"wick::all_reduce_begin.bundle(Tensor[] tensors, str reduction=\"mean\") -> Tensor",
     WICK_KERNEL(beginBundle), kSideEffects | kNotDifferentiable},
    {"wick::all_reduce_end.bundle(Tensor[] like, Tensor ticket) -> Tensor[]",
     WICK_KERNEL(endBundle), kSideEffects | kNotDifferentiable},
};
const RegisterOperators kOperatorsRegistered(kOperatorsRecords);

constexpr autograd::FormulaText kOperatorsFormulas[] = {
    {"wick::all_reduce, wick::all_reduce_end",
     "missing all processes would have to walk back together; a GradientExchange reduces "
     "gradients"},
};
const autograd::RegisterFormulas formulas(kOperatorsFormulas);

constexpr DeviceKernel kMeta[] = {
    {"wick::all_reduce", WICK_KERNEL(allReduceMeta)},
    {"wick::all_reduce_begin", WICK_KERNEL(beginMeta)},
    {"wick::all_reduce_end", WICK_KERNEL(endMeta)},
    {"wick::all_reduce_begin.bundle", WICK_KERNEL(beginBundleMeta)},
    {"wick::all_reduce_end.bundle", WICK_KERNEL(endBundleMeta)},
};
const RegisterDeviceKernels on_meta(DeviceType::Meta, kMeta);

// The group sees to the device. The ticket is on the CPU.
constexpr DeviceKernel kCuda[] = {
    {"wick::all_reduce", WICK_KERNEL(allReduce)},
    {"wick::all_reduce_begin", WICK_KERNEL(begin)},
    {"wick::all_reduce_end", WICK_KERNEL(end)},
    {"wick::all_reduce_begin.bundle", WICK_KERNEL(beginBundle)},
    {"wick::all_reduce_end.bundle", WICK_KERNEL(endBundle)},
};
const RegisterDeviceKernels on_cuda(DeviceType::CUDA, kCuda, TableRule::Mixed);

constexpr const char* kRecorded[] = {"wick::all_reduce", "wick::all_reduce_begin",
                                     "wick::all_reduce_end"};
const lazy::RecordEffects recorded(kRecorded);

}  // namespace

}  // namespace wick::distributed
