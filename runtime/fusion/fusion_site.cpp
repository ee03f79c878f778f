// A call describes its arguments by a key of one word each; the variant with that key has the
// kernels in loop form. Sizes and strides then say how a kernel walks over memory, which selects
// compiled code. What is missing is compiled while the caller goes on without.
#include "runtime/fusion/fusion_site.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "codegen/loop/compiled_kernel.h"
#include "codegen/loop/lowering.h"
#include "core/dtype_dispatch.h"
#include "core/grad_mode.h"
#include "core/log.h"
#include "core/scalar.h"
#include "runtime/compile_queue.h"
#include "runtime/fusion/layout.h"
#include "runtime/fusion/walk.h"
#include "runtime/jit_mode.h"

namespace wick {

namespace {

constexpr size_t kMaxArguments = 64;
using Arguments = std::array<const IValue*, kMaxArguments>;
constexpr size_t kMaxKernels = 8;
// Programs that meet more kinds of arguments at one place run the others operator by operator.
constexpr int kMaxVariants = 24;

std::atomic<uint64_t> launches{0}, fallbacks{0}, variants{0}, kernels{0}, failures{0};

// Keys of arguments: the kind in the high half, below it what kernels of a tensor depend on.
constexpr uint32_t kTensorKey = 1u << 16;
constexpr uint32_t kIntKey = 2u << 16;
constexpr uint32_t kFloatKey = 3u << 16;
constexpr uint32_t kBoolKey = 4u << 16;

struct Key {
  std::array<uint32_t, kMaxArguments + 1> words;
  size_t size = 0;
  bool ordered = true;  // whether all tensors' dimensions lie in memory as they stand; not compared
  friend bool operator==(const Key& a, const Key& b) {
    return a.size == b.size &&
           std::equal(a.words.begin(), a.words.begin() + a.size, b.words.begin());
  }
};

// Whether the dimensions lie in memory as they stand, from the outermost to the innermost: then
// results are row-major. Dimensions that do not move say nothing.
bool isOrdered(const TensorImpl& t) {
  int64_t inner = 0;
  for (size_t d = t.sizes.size(); d-- > 0;) {
    if (t.strides[d] == 0) continue;
    if (t.strides[d] < inner) return false;
    inner = t.strides[d];
  }
  return true;
}

// False for arguments that no kernel takes.
bool describe(const Arguments& arguments, size_t n, Key& key) {
  const bool grad = gradEnabled();
  for (size_t i = 0; i < n; ++i) {
    const IValue& a = *arguments[i];
    switch (a.tag()) {
      case IValue::Tag::Tensor: {
        const auto& t = static_cast<const TensorImpl&>(*a.rawObject());
        if (t.sizes.size() > loop::kMaxRank || !t.storage->device().isCpu()) return false;
        if (isComplex(t.dtype) || t.is_conj || (t.requires_grad && grad)) return false;
        key.ordered = key.ordered && (t.contiguous || isOrdered(t));
        uint32_t word = kTensorKey | static_cast<uint32_t>(t.dtype) |
                        static_cast<uint32_t>(t.sizes.size()) << 4;
        for (size_t d = 0, k = t.sizes.size(); d < t.sizes.size(); ++d) {
          --k;
          if (t.sizes[d] == 1) word |= 1u << (8 + k);
        }
        key.words[i] = word;
        break;
      }
      case IValue::Tag::Int:
        key.words[i] = kIntKey;
        break;
      case IValue::Tag::Double:
        key.words[i] = kFloatKey;
        break;
      case IValue::Tag::Bool:
        key.words[i] = kBoolKey;
        break;
      default:
        return false;
    }
  }
  key.words[n] = static_cast<uint32_t>(defaultDType());
  key.size = n + 1;
  return true;
}

std::vector<loop::ArgumentInfo> infosOf(const Key& key) {
  using Kind = loop::ArgumentInfo::Kind;
  std::vector<loop::ArgumentInfo> infos;
  for (size_t i = 0; i + 1 < key.size; ++i) {
    const uint32_t word = key.words[i];
    loop::ArgumentInfo info;
    switch (word & ~0xffffu) {
      case kTensorKey:
        info.dtype = static_cast<DType>(word & 15);
        info.rank = static_cast<uint8_t>(word >> 4 & 15);
        info.ones = static_cast<uint8_t>(word >> 8 & 255);
        break;
      case kIntKey:
        info.kind = Kind::Int;
        break;
      case kFloatKey:
        info.kind = Kind::Float;
        break;
      default:
        info.kind = Kind::Bool;
    }
    infos.push_back(info);
  }
  return infos;
}

// What code depends on besides its kernel, for comparing: two bits an access.
struct LayoutKey {
  std::array<uint64_t, 2 * kMaxAccesses / 64 + 1> bits{};
  friend bool operator==(const LayoutKey&, const LayoutKey&) = default;
};

int64_t bitsOf(const IValue& number, DType type) {
  int64_t bits = 0;
  const Scalar n = Scalar::fromIValue(number);
  dispatchAll(type, [&]<class T>() {
    T value = n.to<T>();
    std::memcpy(&bits, &value, std::min(sizeof value, sizeof bits));
  });
  return bits;
}

// Follows the operators to the layouts of the outputs. False when shapes do not broadcast.
bool followLayouts(const loop::Program& program, const Arguments& arguments, size_t n,
                   std::vector<TensorLayout>& outputs) {
  std::vector<TensorLayout> tensors(n + program.steps.size());
  for (size_t i = 0; i < n; ++i) {
    if (!arguments[i]->isTensor()) continue;
    const auto& t = static_cast<const TensorImpl&>(*arguments[i]->rawObject());
    tensors[i].rank = static_cast<int>(t.sizes.size());
    std::copy(t.sizes.begin(), t.sizes.end(), tensors[i].sizes.begin());
    std::copy(t.strides.begin(), t.strides.end(), tensors[i].strides.begin());
  }
  std::vector<const TensorLayout*> operands;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    operands.clear();
    for (uint32_t operand : program.steps[i].operands) operands.push_back(&tensors[operand]);
    if (!pointwiseLayout(operands, tensors[n + i])) return false;
  }
  for (uint32_t t : program.output_tensors) outputs.push_back(tensors[t]);
  return true;
}

// One kernel's way over memory in one call.
struct Launch {
  loop::KernelFunction* function;
  std::array<int64_t, loop::kMaxRank> sizes;
  std::array<Touch, kMaxAccesses> touches;
  Walk walk;
};

}  // namespace

struct FusionSite::State {
  struct Code {
    LayoutKey key;
    loop::LaneLayout layout;
    std::atomic<loop::KernelFunction*> function{nullptr};
    std::shared_ptr<const void> memory;
    Code* older = nullptr;
  };
  struct Variant {
    Key key;
    bool usable = false;  // whether there is a loop form
    loop::Program program;
    std::array<std::atomic<Code*>, kMaxKernels> codes{};  // of each kernel, the newest first
    Variant* older = nullptr;
    ~Variant() {
      for (auto& list : codes) {
        for (Code* c = list.load(); c;) delete std::exchange(c, c->older);
      }
    }
  };

  ~State() {
    for (Variant* v = newest.load(); v;) delete std::exchange(v, v->older);
  }

  Variant* find(const Key& key) {
    for (Variant* v = newest.load(std::memory_order_acquire); v; v = v->older) {
      if (v->key == key) return v;
    }
    return add(key);
  }
  Variant* add(const Key& key);
  loop::KernelFunction* codeFor(const std::shared_ptr<State>& self, Variant& variant, size_t k,
                                const Walk& walk);
  bool prepare(const std::shared_ptr<State>& self, Variant& variant, size_t k,
               const Arguments& arguments, const std::vector<TensorLayout>& layouts,
               Launch& launch);

  std::shared_ptr<Graph> body;
  std::string name;
  std::vector<IValue> constants;  // tensors of the body, arguments behind those of the caller
  std::mutex mutex;               // of those who add
  int num_variants = 0;
  std::atomic<Variant*> newest{nullptr};
};

FusionSite::State::Variant* FusionSite::State::add(const Key& key) {
  std::lock_guard lock(mutex);
  for (Variant* v = newest.load(); v; v = v->older) {
    if (v->key == key) return v;
  }
  if (num_variants == kMaxVariants) return nullptr;
  auto variant = std::make_unique<Variant>();
  variant->key = key;
  try {
    variant->program = loop::lowerGroup(*body, infosOf(key));
    variant->usable = variant->program.kernels.size() <= kMaxKernels;
    for (const loop::Kernel& kernel : variant->program.kernels) {
      variant->usable &=
          kernel.accesses.size() <= kMaxAccesses && kernel.numbers.size() <= kMaxAccesses;
    }
  } catch (const loop::Unsupported& e) {
    GRAPH_DEBUG("{}: {}", name, e.what());
    failures.fetch_add(1, std::memory_order_relaxed);
  }
  variants.fetch_add(1, std::memory_order_relaxed);
  ++num_variants;
  variant->older = newest.load();
  newest.store(variant.get(), std::memory_order_release);
  return variant.release();
}

// Null while the code is being compiled, or when it cannot be.
loop::KernelFunction* FusionSite::State::codeFor(const std::shared_ptr<State>& self,
                                                 Variant& variant, size_t k, const Walk& walk) {
  const loop::Kernel& kernel = variant.program.kernels[k];
  LayoutKey key;
  const size_t n = kernel.accesses.size();
  for (size_t a = 0; a < n; ++a) {
    auto step = static_cast<uint64_t>(laneStep(kernel, walk, a));
    key.bits[a / 32] |= step << (a % 32 * 2);
  }
  key.bits.back() = walk.across_rows;
  auto find = [&]() -> Code* {
    for (Code* c = variant.codes[k].load(std::memory_order_acquire); c; c = c->older) {
      if (c->key == key) return c;
    }
    return nullptr;
  };
  if (Code* code = find()) return code->function.load(std::memory_order_acquire);
  Code* added;
  {
    std::lock_guard lock(mutex);
    if (Code* code = find()) return code->function.load(std::memory_order_acquire);
    added = new Code;
    added->key = key;
    added->layout.across_rows = walk.across_rows;
    for (size_t a = 0; a < n; ++a) added->layout.steps.push_back(laneStep(kernel, walk, a));
    added->older = variant.codes[k].load();
    variant.codes[k].store(added, std::memory_order_release);
  }
  kernels.fetch_add(1, std::memory_order_relaxed);
  submitCompile([self, added, &kernel] {
    try {
      loop::CompiledKernel code = loop::kernelCompiler()(self->name, kernel, added->layout);
      added->memory = std::move(code.memory);
      added->function.store(code.function, std::memory_order_release);
    } catch (const std::exception& e) {
      GRAPH_DEBUG("{}: {}", self->name, e.what());
      failures.fetch_add(1, std::memory_order_relaxed);
    }
  });
  return added->function.load(std::memory_order_acquire);
}

// Sizes, steps and code; outputs have no address yet. False when the group cannot run as kernels.
bool FusionSite::State::prepare(const std::shared_ptr<State>& self, Variant& variant, size_t k,
                                const Arguments& arguments,
                                const std::vector<TensorLayout>& layouts, Launch& launch) {
  const loop::Kernel& kernel = variant.program.kernels[k];
  const size_t first_store = kernel.accesses.size() - kernel.stores.size();
  launch.sizes.fill(1);
  for (size_t a = 0; a < first_store; ++a) {
    const loop::Access& access = kernel.accesses[a];
    const auto& t = static_cast<const TensorImpl&>(*arguments[access.argument]->rawObject());
    const auto item = static_cast<int64_t>(itemSize(t.dtype));
    Touch& touch = launch.touches[a];
    touch.base = static_cast<char*>(t.storage->data()) + t.offset * item;
    for (size_t d = 0; d < static_cast<size_t>(kernel.rank); ++d) {
      const int from = access.dims[d];
      if (from < 0) {
        touch.steps[d] = 0;
        continue;
      }
      const auto i = static_cast<size_t>(from);
      if (launch.sizes[d] != t.sizes[i]) {
        // Sizes of one are never loaded along a dimension, so one says: not seen yet.
        if (launch.sizes[d] != 1) return false;
        launch.sizes[d] = t.sizes[i];
      }
      touch.steps[d] = t.strides[i] * item;
    }
  }
  for (size_t d = 0; d < static_cast<size_t>(kernel.rank); ++d) {
    if ((kernel.reduced >> d & 1) != 0 && launch.sizes[d] == 0) return false;
  }
  for (size_t a = first_store; a < kernel.accesses.size(); ++a) {
    const loop::Access& access = kernel.accesses[a];
    const loop::OutputInfo& output = variant.program.outputs[access.argument];
    // Row-major unless another layout is given.
    const auto item = static_cast<int64_t>(itemSize(output.dtype));
    std::array<int64_t, loop::kMaxRank> strides;
    int64_t next = item;
    for (size_t i = output.rank; i-- > 0;) {
      strides[i] = layouts.empty() ? next : layouts[access.argument].strides[i] * item;
      if (output.dims[i] >= 0) next *= launch.sizes[static_cast<size_t>(output.dims[i])];
    }
    Touch& touch = launch.touches[a];
    touch.steps.fill(0);
    for (size_t d = 0; d < static_cast<size_t>(kernel.rank); ++d) {
      if (access.dims[d] >= 0) touch.steps[d] = strides[static_cast<size_t>(access.dims[d])];
    }
  }
  std::array<int, loop::kMaxRank> order;
  for (int i = 0; i < kernel.rank; ++i) order[static_cast<size_t>(i)] = kernel.rank - 1 - i;
  if (!layouts.empty()) {
    const Touch& first = launch.touches[first_store];
    std::stable_sort(order.begin(), order.begin() + kernel.rank, [&](int a, int b) {
      return first.steps[static_cast<size_t>(a)] < first.steps[static_cast<size_t>(b)];
    });
  }
  std::span<const Touch> touches(launch.touches.data(), kernel.accesses.size());
  if (!planWalk(kernel, launch.sizes, touches,
                std::span<const int>(order.data(), static_cast<size_t>(kernel.rank)),
                launch.walk)) {
    return false;
  }
  launch.function = codeFor(self, variant, k, launch.walk);
  return launch.function != nullptr;
}

FusionSite::FusionSite(const Node& group) : state_(std::make_shared<State>()) {
  state_->body = group.subgraph(attr::Subgraph);
  state_->name = fusionGroupName(*state_->body);
  for (const Value* v : loop::tensorConstants(*state_->body)) {
    state_->constants.push_back(*constantOf(v));
  }
}
FusionSite::~FusionSite() = default;

const std::string& FusionSite::name() const {
  return state_->name;
}
const Graph& FusionSite::body() const {
  return *state_->body;
}

std::vector<std::vector<loop::ArgumentInfo>> FusionSite::argumentsMet() const {
  std::vector<std::vector<loop::ArgumentInfo>> met;
  for (auto* v = state_->newest.load(std::memory_order_acquire); v; v = v->older) {
    met.push_back(infosOf(v->key));
  }
  return met;
}

bool FusionSite::run(const IValue* given, size_t num_given, IValue* results) {
  auto fall_back = [] {
    fallbacks.fetch_add(1, std::memory_order_relaxed);
    return false;
  };
  const size_t n = num_given + state_->constants.size();
  Arguments arguments;
  Key key;
  if (n > kMaxArguments || jitMode() == JitMode::Off) return fall_back();
  for (size_t i = 0; i < num_given; ++i) arguments[i] = &given[i];
  for (size_t i = num_given; i < n; ++i) arguments[i] = &state_->constants[i - num_given];
  if (!describe(arguments, n, key)) return fall_back();
  State::Variant* variant = state_->find(key);
  if (!variant || !variant->usable) return fall_back();
  const loop::Program& program = variant->program;
  std::array<Launch, kMaxKernels> launches_of;
  for (const loop::SizeCheck& check : program.checks) {
    const auto& t = static_cast<const TensorImpl&>(*arguments[check.argument]->rawObject());
    if (t.sizes[check.dim] != check.size) return fall_back();
  }
  std::vector<TensorLayout> layouts;
  if (!key.ordered && (program.steps.empty() || !followLayouts(program, arguments, n, layouts))) {
    return fall_back();
  }
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    if (!state_->prepare(state_, *variant, k, arguments, layouts, launches_of[k])) {
      return fall_back();
    }
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const loop::OutputInfo& output = program.outputs[i];
    DimVector sizes(output.rank, 1);
    for (size_t d = 0; d < output.rank; ++d) {
      if (output.dims[d] >= 0) {
        sizes[d] = launches_of[output.kernel].sizes[static_cast<size_t>(output.dims[d])];
      }
    }
    if (layouts.empty()) {
      results[i] = IValue(Tensor::empty(sizes, output.dtype));
    } else {
      IntSpan strides(layouts[i].strides.data(), output.rank);
      results[i] = IValue(Tensor::emptyStrided(sizes, strides, output.dtype));
    }
  }
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const loop::Kernel& kernel = program.kernels[k];
    Launch& launch = launches_of[k];
    for (const loop::Store& store : kernel.stores) {
      const auto& t = static_cast<const TensorImpl&>(
          *results[kernel.accesses[store.access].argument].rawObject());
      launch.touches[store.access].base = static_cast<char*>(t.storage->data());
    }
    std::array<int64_t, kMaxAccesses> numbers;
    for (size_t i = 0; i < kernel.numbers.size(); ++i) {
      numbers[i] = bitsOf(*arguments[kernel.numbers[i].argument], kernel.numbers[i].type);
    }
    runWalk(kernel, launch.walk,
            std::span<const Touch>(launch.touches.data(), kernel.accesses.size()),
            std::span<const int64_t>(numbers.data(), kernel.numbers.size()), launch.function);
  }
  launches.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::string fusionGroupName(const Graph& body) {
  constexpr size_t kMaxLength = 60;
  std::string name = "fused";
  for (const Node* node : body.nodes()) {
    if (node->kind() == prim::Constant) continue;
    name += "_";
    std::string_view kind = node->kind().qualString();
    for (char c : kind.substr(kind.rfind(':') + 1)) {
      name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    if (name.size() > kMaxLength) return name.substr(0, kMaxLength);
  }
  return name;
}

FusionStatistics fusionStatistics() {
  return {launches.load(), fallbacks.load(), variants.load(), kernels.load(), failures.load()};
}

}  // namespace wick
