#include "runtime/kernels/onednn.h"

#include <omp.h>

#include "core/parallel.h"
#include "runtime/kernels/gemm.h"

namespace wick::onednn {

namespace {

// All packed forms of the weights that live in one storage.
class PackedWeights : public RefCounted {
 public:
  struct Entry {
    int64_t offset;
    uint32_t version;
    dnnl::memory::desc plain;
    std::shared_ptr<dnnl::memory> packed;
  };

  std::shared_ptr<dnnl::memory> find(const Tensor& weight, const dnnl::memory::desc& plain,
                                     const dnnl::memory::desc& wanted) {
    std::lock_guard<std::mutex> lock(mutex_);
    uint32_t version = weight.storage()->version();
    std::erase_if(entries_, [&](const Entry& e) { return e.version != version; });
    for (const Entry& e : entries_) {
      if (e.offset == weight.offset() && e.packed->get_desc() == wanted && e.plain == plain) {
        return e.packed;
      }
    }
    return nullptr;
  }

  void add(Entry entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (entries_.size() >= kMostEntries) entries_.erase(entries_.begin());
    entries_.push_back(std::move(entry));
  }

 private:
  // One storage may hold many weights, each with a form for each batch size.
  static constexpr size_t kMostEntries = 512;
  std::mutex mutex_;
  std::vector<Entry> entries_;
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

std::shared_ptr<dnnl::memory> packWeight(const Tensor& weight, const dnnl::memory::desc& plain,
                                         const dnnl::memory::desc& wanted) {
  Storage& storage = *weight.storage();
  RefCounted* derived = storage.derived();
  if (!derived) derived = storage.attachDerived(makeRef<PackedWeights>());
  auto* packed_weights = dynamic_cast<PackedWeights*>(derived);
  if (packed_weights) {
    if (auto found = packed_weights->find(weight, plain, wanted)) return found;
  }
  uint32_t version = storage.version();
  // The memory counts as a tensor's, and lives as long as the memory object that points to it.
  Ref<Storage> block = Storage::allocate(wanted.get_size());
  std::shared_ptr<dnnl::memory> packed(new dnnl::memory(wanted, engine(), block->data()),
                                       [block](dnnl::memory* m) { delete m; });
  if (!packTransposed(plain, wanted, static_cast<const float*>(weight.rawData()),
                      static_cast<float*>(block->data()))) {
    dnnl::memory source(plain, engine(), weight.rawData());
    dnnl::reorder(source, *packed).execute(stream(), source, *packed);
    stream().wait();
  }
  if (packed_weights) packed_weights->add({weight.offset(), version, plain, packed});
  return packed;
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

}  // namespace wick::onednn
