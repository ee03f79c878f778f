// Operators that PyTorch has only for tensors that do not exist here: those of CUDA, what its
// passes for other devices insert. Programs that name them compile; a call that is reached is an
// error, as PyTorch's own is for dense tensors on the CPU.
#include "core/error.h"
#include "ir/operator.h"
#include "runtime/ops/refusals.h"

namespace wick::ops {

namespace {

enum class Needs { Cuda, OtherDevice, Files, ForwardMode, HalfComplex };

constexpr const char* kReasons[] = {
    "exists for CUDA only, and the tensors are on the CPU",
    "exists for other devices than the CPU only",
    "would read files, on which a program gets no hand; load the tensor outside and pass it",
    "belongs to forward-mode differentiation, which is not supported",
    "makes complex numbers of half precision, a dtype that is not supported",
};

template <Needs kNeeds>
void refuse(CallFrame& frame) {
  throwRuntimeError("{}: {}", frame.op->schema().name(), kReasons[static_cast<size_t>(kNeeds)]);
}

constexpr Kernel kCuda = &refuse<Needs::Cuda>;
constexpr Kernel kOther = &refuse<Needs::OtherDevice>;
constexpr Kernel kForward = &refuse<Needs::ForwardMode>;

#define WICK_STATISTICS \
  "(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? running_var, float "

constexpr OperatorRecord kOtherBackendsRecords[] = {
    {"aten::_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)",
     kCuda, kNondeterministic},
    {"aten::_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor", kCuda},
    {"aten::_conv_depthwise2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias, int[2] "
     "stride, int[2] padding, int[2] dilation) -> Tensor",
     kCuda},
    {"aten::batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor "
     "invstd, float eps) -> Tensor",
     kCuda},
    {"aten::batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)", kCuda},
    {"aten::batch_norm_gather_stats" WICK_STATISTICS
     "momentum, float eps, int count) -> (Tensor, Tensor)",
     kCuda, kNoFlags, nullptr, nullptr, "running_mean running_var"},
    {"aten::batch_norm_gather_stats_with_counts" WICK_STATISTICS
     "momentum, float eps, Tensor counts) -> (Tensor, Tensor)",
     kCuda, kNoFlags, nullptr, nullptr, "running_mean running_var"},
    {"aten::_cufft_get_plan_cache_size(int device_index) -> int", kCuda, kSideEffects},
    {"aten::_cufft_get_plan_cache_max_size(int device_index) -> int", kCuda, kSideEffects},
    {"aten::_cufft_set_plan_cache_max_size(int device_index, int max_size) -> ()", kCuda,
     kSideEffects},
    {"aten::_cufft_clear_plan_cache(int device_index) -> ()", kCuda, kSideEffects},
    {"aten::_pin_memory(Tensor self, Device? device=None) -> Tensor", kCuda},
    {"aten::_copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor", kOther},
    {"aten::_copy_from_and_resize(Tensor self, Tensor dst) -> Tensor", kOther},
    {"aten::_resize_output(Tensor self, int[] size, Device device) -> Tensor", kOther},
    {"aten::_resize_output_(Tensor(a!) self, int[] size, Device device) -> Tensor(a!)", kOther,
     kChangesMetadata},
    {"aten::from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     &refuse<Needs::Files>, kNondeterministic},
    {"aten::glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor", kForward},
    {"aten::_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int "
     "self_num_batch_dims=0) -> Tensor",
     kForward},
    {"aten::chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
     &refuse<Needs::HalfComplex>},
};

const RegisterOperators kOtherBackendsRegistered(kOtherBackendsRecords);

template <Needs... kNeeds>
const char* reasonOf(Kernel kernel) {
  const char* reason = nullptr;
  ((kernel == &refuse<kNeeds> ? void(reason = kReasons[static_cast<size_t>(kNeeds)]) : void()),
   ...);
  return reason;
}

}  // namespace

const char* refusalOf(const Operator& op) {
  return reasonOf<Needs::Cuda, Needs::OtherDevice, Needs::Files, Needs::ForwardMode,
                  Needs::HalfComplex>(op.record().kernel);
}

}  // namespace wick::ops
