#include "runtime/kernels/onednn.h"

#include <omp.h>

#include "core/error.h"
#include "core/parallel.h"
#include "runtime/kernels/gemm.h"

namespace wick::onednn {

namespace {

// The library's code that packs, made when it is first needed for a number of threads.
struct Turn {
  dnnl::reorder code;
  int64_t threads = 0;
};

void pack(const Tensor& weight, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted,
          dnnl::memory& packed, Turn& turn) {
  if (packTransposed(plain, wanted, static_cast<const float*>(weight.rawData()),
                     static_cast<float*>(packed.get_data_handle()))) {
    return;
  }
  dnnl::memory source(plain, engine(), weight.rawData());
  if (turn.threads != threadCount()) turn = {dnnl::reorder(source, packed), threadCount()};
  turn.code.execute(stream(), source, packed);
  stream().wait();
}

// All packed forms of the weights that live in one storage. Forms are only added; what a form was
// packed from has a version, and threads read without a lock what is up to date. A weight that is
// written to while others multiply by it gives them wrong numbers, packed or not.
class PackedWeights : public RefCounted {
 public:
  ~PackedWeights() override {
    for (Form* form = newest_.load(); form;) delete std::exchange(form, form->older);
  }

  // Null when there are too many forms.
  const dnnl::memory* get(const Tensor& weight, const dnnl::memory::desc& plain,
                          const dnnl::memory::desc& wanted) {
    const uint64_t version = weight.storage()->version();
    Form* form = find(weight, plain, wanted);
    if (form && form->version.load(std::memory_order_acquire) == version) return &form->packed;
    std::lock_guard<std::mutex> lock(mutex_);
    form = find(weight, plain, wanted);
    std::unique_ptr<Form> added;
    if (!form) {
      if (count_ == kMostForms) return nullptr;
      added = std::make_unique<Form>(weight.offset(), plain, wanted);
      form = added.get();
    }
    if (form->version.load(std::memory_order_relaxed) != version) {
      pack(weight, plain, wanted, form->packed, form->turn);
      form->version.store(version, std::memory_order_release);
    }
    if (added) {
      ++count_;
      added->older = newest_.load(std::memory_order_relaxed);
      newest_.store(added.release(), std::memory_order_release);
    }
    return &form->packed;
  }

 private:
  struct Form {
    Form(int64_t offset, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted)
        : offset(offset),
          plain(plain),
          wanted(wanted),
          block(Storage::allocate(wanted.get_size())),
          packed(wanted, engine(), block->data()) {}
    const int64_t offset;
    const dnnl::memory::desc plain, wanted;
    const Ref<Storage> block;  // it counts as a tensor's memory
    dnnl::memory packed;
    Turn turn;  // of those who pack
    std::atomic<uint64_t> version{kNever};
    Form* older = nullptr;
  };

  Form* find(const Tensor& weight, const dnnl::memory::desc& plain,
             const dnnl::memory::desc& wanted) const {
    Form* form = newest_.load(std::memory_order_acquire);
    while (form &&
           !(form->offset == weight.offset() && form->wanted == wanted && form->plain == plain)) {
      form = form->older;
    }
    return form;
  }

  // One storage may hold many weights, each with a form for each batch size.
  static constexpr size_t kMostForms = 512;
  static constexpr uint64_t kNever = ~uint64_t{0};  // storages count to 2^32
  std::mutex mutex_;                                // of those who pack
  size_t count_ = 0;
  std::atomic<Form*> newest_{nullptr};
};

struct Scratch {
  Ref<Storage> block;
};

}  // namespace

bool computes(DType dtype) {
  if (dtype == DType::Float) return true;
  if (dtype != DType::BFloat16) return false;
  // A set of instructions has the bits of all that it contains.
  static const bool multiplies = [] {
    const int wanted = static_cast<int>(dnnl::cpu_isa::avx512_core_bf16);
    return (static_cast<int>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
  }();
  return multiplies;
}

// Never destroyed: primitives in static caches refer to it.
dnnl::engine& engine() {
  static dnnl::engine* instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *instance;
}

dnnl::stream& stream() {
  thread_local dnnl::stream instance(engine());
  ensureTeam(static_cast<int>(threadCount()));
  return instance;
}

int64_t threadCount() {
  return omp_in_parallel() ? 1 : omp_get_max_threads();
}

void* scratchpad(size_t bytes) {
  thread_local Scratch scratch;
  if (bytes == 0) return nullptr;
  if (!scratch.block || scratch.block->bytes() < bytes) {
    scratch.block = nullptr;
    scratch.block = Storage::allocate(bytes);
  }
  return scratch.block->data();
}

PackedWeight packWeight(const Tensor& weight, const dnnl::memory::desc& plain,
                        const dnnl::memory::desc& wanted) {
  Storage& storage = *weight.storage();
  RefCounted* derived = storage.derived();
  if (!derived) derived = storage.attachDerived(makeRef<PackedWeights>());
  if (auto* packed_weights = dynamic_cast<PackedWeights*>(derived)) {
    if (const dnnl::memory* kept = packed_weights->get(weight, plain, wanted)) {
      return PackedWeight(*kept);
    }
  }
  // The memory counts as a tensor's, and lives as long as the memory object that points to it.
  Ref<Storage> block = Storage::allocate(wanted.get_size());
  std::shared_ptr<dnnl::memory> packed(new dnnl::memory(wanted, engine(), block->data()),
                                       [block](dnnl::memory* m) { delete m; });
  Turn turn;
  pack(weight, plain, wanted, *packed, turn);
  return PackedWeight(std::move(packed));
}

void Arguments::execute(const dnnl::primitive& primitive) const {
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream().get(),
                                                 static_cast<int>(size_), list_.data()),
                          "could not execute a primitive");
}

void appendActivation(dnnl::post_ops& ops, Activation activation) {
  using dnnl::algorithm;
  switch (activation) {
    case Activation::None:
      return;
    case Activation::Relu:
      return ops.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
    case Activation::Sigmoid:
      return ops.append_eltwise(1, algorithm::eltwise_logistic, 0, 0);
    case Activation::Tanh:
      return ops.append_eltwise(1, algorithm::eltwise_tanh, 0, 0);
    case Activation::Gelu:
      return ops.append_eltwise(1, algorithm::eltwise_gelu_erf, 0, 0);
    case Activation::Silu:
      return ops.append_eltwise(1, algorithm::eltwise_swish, 1, 0);
    case Activation::HardTanh:
      return ops.append_eltwise(1, algorithm::eltwise_clip, 0, 6);
    case Activation::HardSwish:
      return ops.append_eltwise(1, algorithm::eltwise_hardswish, 0, 0);
  }
}

dnnl::memory::desc describe(IntSpan sizes, IntSpan strides, DType dtype) {
  WICK_ASSERT(dtype == DType::Float || dtype == DType::BFloat16, "oneDNN: {}", toString(dtype));
  using Type = dnnl::memory::data_type;
  return dnnl::memory::desc(dnnl::memory::dims(sizes.begin(), sizes.end()),
                            dtype == DType::Float ? Type::f32 : Type::bf16,
                            dnnl::memory::dims(strides.begin(), strides.end()));
}

DimVector channelsInnermost(IntSpan sizes) {
  DimVector strides(sizes.size());
  strides[1] = 1;
  int64_t step = sizes[1];
  for (size_t d = sizes.size(); d-- > 2;) {
    strides[d] = step;
    step *= sizes[d];
  }
  strides[0] = step;
  return strides;
}

Tensor toChannelsInnermost(const Tensor& t) {
  const DimVector strides = channelsInnermost(t.sizes());
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.size(d) <= 1 || t.stride(d) == strides[static_cast<size_t>(d)]) continue;
    Tensor copy = Tensor::emptyStrided(t.sizes(), strides, t.dtype(), t.device());
    copy.copyFrom(t);
    return copy;
  }
  return t;
}

}  // namespace wick::onednn
