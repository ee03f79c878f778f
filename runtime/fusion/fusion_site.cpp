// A call describes its arguments by a key of one word each; the variant with that key has the
// kernels in loop form. Sizes and strides then say how a kernel walks over memory, which selects
// compiled code. What is missing is compiled while the caller goes on without.
#include "runtime/fusion/fusion_site.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "codegen/loop/compiled_kernel.h"
#include "codegen/loop/lowering.h"
#include "core/device_backend.h"
#include "core/grad_mode.h"
#include "core/log.h"
#include "core/stripes.h"
#include "runtime/compile_queue.h"
#include "runtime/fusion/group_backend.h"
#include "runtime/fusion/launch.h"
#include "runtime/fusion/site_derivative.h"
#include "runtime/jit_mode.h"

namespace wick {

namespace {

constexpr size_t kMaxArguments = kMaxAccesses;
using Arguments = std::array<const IValue*, kMaxArguments>;
constexpr size_t kMaxKernels = 16;
// Programs that meet more kinds of arguments at one place run the others operator by operator.
constexpr int kMaxVariants = 24;
// Of one key: what views give may differ.
constexpr int kMaxAlike = 4;
// On devices there may be nothing else that runs them.
constexpr int kMaxDeviceVariants = 256, kMaxAlikeOnDevice = 64;
// Calls for whose shapes no kernels were found.
constexpr int kMaxFailures = 64;
// Ways of lying in memory for which one kernel is compiled; programs have few, but there is no end
// of those that one may make. Calls beyond run operator by operator, as do those beyond what one
// site may have of all its kernels, and the process of all its sites.
constexpr int kMaxLayouts = 16;
constexpr int kMaxCodes = 256;
constexpr int64_t kMaxCodesOfProcess = 1 << 15;

StripedCounter launches_made, fallbacks;
std::atomic<uint64_t> variants{0}, kernels{0}, failures{0};
std::atomic<int64_t> live_codes{0};

// Keys of arguments: the kind in the high half, below it what kernels of a tensor depend on.
constexpr uint32_t kTensorKey = 1u << 16;
constexpr uint32_t kIntKey = 2u << 16;
constexpr uint32_t kFloatKey = 3u << 16;
constexpr uint32_t kBoolKey = 4u << 16;

struct Key {
  std::array<uint32_t, kMaxArguments + 1> words;
  size_t size = 0;
  bool ordered = true;  // whether all tensors' dimensions lie in memory as they stand; not compared
  Device device;        // of all tensors; of its index kernels know nothing
  friend bool operator==(const Key& a, const Key& b) {
    return a.size == b.size &&
           std::equal(a.words.begin(), a.words.begin() + a.size, b.words.begin());
  }
};

// False for arguments that no kernel takes.
bool describe(const Arguments& arguments, size_t n, Key& key) {
  const bool grad = gradEnabled();
  bool placed = false;
  for (size_t i = 0; i < n; ++i) {
    const IValue& a = *arguments[i];
    switch (a.tag()) {
      case IValue::Tag::Tensor: {
        const auto& t = static_cast<const TensorImpl&>(*a.rawObject());
        if (t.kind != TensorKind::Dense) return false;
        if (t.sizes.size() > loop::kMaxRank) return false;
        const Device device = t.storage->device();
        if (placed && device != key.device) return false;
        key.device = device;
        placed = true;
        if (isComplex(t.dtype) || t.is_conj || (grad && (t.requires_grad || t.history))) {
          return false;
        }
        // Contiguous tensors may have any strides where they have one element.
        key.ordered = key.ordered && loop::isOrdered(layoutOf(t));
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
        key.words[i] = kBoolKey | static_cast<uint32_t>(a.toBool());
        break;
      default:
        return false;
    }
  }
  key.words[n] = static_cast<uint32_t>(defaultDType()) |
                 static_cast<uint32_t>(static_cast<uint8_t>(key.device.type)) << 8;
  key.size = n + 1;
  return true;
}

bool isSmall(const loop::Kernel& kernel) {
  return kernel.accesses.size() <= kMaxAccesses && kernel.numbers.size() <= kMaxAccesses;
}

// What code depends on besides its kernel, for comparing: two bits an access.
struct LayoutKey {
  std::array<uint64_t, 2 * kMaxAccesses / 64 + 1> bits{};
  friend bool operator==(const LayoutKey&, const LayoutKey&) = default;
};

}  // namespace

struct FusionSite::State {
  struct CompiledLayout {
    LayoutKey key;
    loop::LaneLayout layout;
    std::atomic<loop::KernelFunction*> function{nullptr};
    std::shared_ptr<const void> memory;
    CompiledLayout* older = nullptr;
    int count = 1;  // with the older ones
    CompiledLayout() { live_codes.fetch_add(1, std::memory_order_relaxed); }
    ~CompiledLayout() { live_codes.fetch_sub(1, std::memory_order_relaxed); }
  };
  // Codes of one kernel, the newest first.
  struct LayoutList {
    std::atomic<CompiledLayout*> newest{nullptr};
    ~LayoutList() {
      for (CompiledLayout* c = newest.load(); c;) delete std::exchange(c, c->older);
    }
  };
  // A kernel in stages, with the code of each.
  struct Split {
    explicit Split(const loop::Kernel& kernel)
        : rows(loop::splitRows(kernel)), codes(rows.stages.size()) {}
    loop::SplitRows rows;
    std::vector<LayoutList> codes;
  };
  struct Variant {
    Key key;
    std::vector<loop::ArgumentInfo> arguments;
    bool usable = false;  // whether there is a loop form
    loop::LoweredGroup group;
    std::array<LayoutList, kMaxKernels> codes;               // of each kernel
    std::array<std::unique_ptr<Split>, kMaxKernels> splits;  // null where rows stay whole
    // Of each kernel, on other devices than the CPU, instead of these.
    std::array<std::unique_ptr<GroupBackend::Code>, kMaxKernels> device_codes;
    Variant* older = nullptr;
  };

  ~State() {
    for (Variant* v = newest.load(); v;) delete std::exchange(v, v->older);
  }

  // Of the variants with this key, the next after one.
  Variant* next(const Key& key, const Variant* after) const {
    Variant* v = after ? after->older : newest.load(std::memory_order_acquire);
    while (v && !(v->key == key)) v = v->older;
    return v;
  }
  // A variant for arguments that no other takes; null when there is none, or too many.
  Variant* add(const Key& key, std::span<const IValue* const> arguments);
  loop::KernelFunction* codeFor(const std::shared_ptr<State>& self, const loop::Kernel& kernel,
                                LayoutList& codes, const Walk& walk);
  // Whether no more code may be made for a kernel.
  bool isFull(const LayoutList& codes) const {
    const CompiledLayout* newest = codes.newest.load(std::memory_order_acquire);
    return (newest && newest->count >= kMaxLayouts) ||
           num_codes.load(std::memory_order_relaxed) >= kMaxCodes ||
           live_codes.load(std::memory_order_relaxed) >= kMaxCodesOfProcess;
  }
  bool findCode(const std::shared_ptr<State>& self, Variant& variant, size_t k, Launch& launch);
  enum class Fit { Runs, NotNow, Differs };
  // Prepares all launches but for their outputs. Differs: another variant may do.
  Fit prepare(const std::shared_ptr<State>& self, Variant& variant, GroupCall& call,
              Launch* launches);

  // False when a kernel cannot be compiled.
  bool runOnDevice(Variant& variant, Device device, Launch* launches,
                   const std::vector<Tensor>& outputs);

  std::shared_ptr<Graph> body;
  std::string name;
  bool writes = false;
  std::unique_ptr<SiteDerivative> derivative;  // of a prim::DifferentiableGraph or prim::JointGraph
  bool only_recorded = false;     // of the latter: where nothing is recorded its nodes run
  std::vector<IValue> constants;  // tensors of the body, arguments behind those of the caller
  std::mutex mutex;               // of those who add
  int num_variants = 0;
  int num_failures = 0;
  std::atomic<bool> full{false};
  std::atomic<int> num_codes{0};
  std::atomic<Variant*> newest{nullptr};
};

FusionSite::State::Variant* FusionSite::State::add(const Key& key,
                                                   std::span<const IValue* const> arguments) {
  std::lock_guard lock(mutex);
  int alike = 0;
  for (const Variant* v = newest.load(); v; v = v->older) alike += v->key == key;
  const bool on_cpu = key.device.isCpu();
  if (num_variants >= (on_cpu ? kMaxVariants : kMaxDeviceVariants) ||
      alike >= (on_cpu ? kMaxAlike : kMaxAlikeOnDevice) || num_failures == kMaxFailures) {
    full.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  auto variant = std::make_unique<Variant>();
  variant->key = key;
  for (const IValue* a : arguments) variant->arguments.push_back(argumentInfo(*a));
  try {
    // What is compiled ahead of time is for the CPU too.
    const auto functions = key.device.isCuda() ? FunctionForm::Called : FunctionForm::Composed;
    variant->group = loop::lowerGroup(*body, variant->arguments, functions);
    variant->usable = variant->group.kernels.size() <= kMaxKernels;
    for (const loop::Kernel& kernel : variant->group.kernels) variant->usable &= isSmall(kernel);
    for (size_t k = 0; variant->usable && k < variant->group.kernels.size(); ++k) {
      const loop::Kernel& kernel = variant->group.kernels[k];
      if (!key.device.isCpu()) {
        GroupBackend* backend = groupBackend(key.device.type);
        if (!backend) throw loop::Unsupported("no kernels for the device");
        variant->device_codes[k] = backend->prepare(name, kernel);
        continue;
      }
      if (kernel.reductions.empty()) continue;
      auto split = std::make_unique<Split>(kernel);
      const auto small = [](const loop::RowStage& stage) { return isSmall(stage.kernel); };
      if (std::ranges::all_of(split->rows.stages, small)) variant->splits[k] = std::move(split);
    }
  } catch (const loop::UnsupportedShapes& e) {
    GRAPH_DEBUG("{}: {}", name, e.what());
    ++num_failures;
    return nullptr;
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

// Null while the code is being compiled, when it cannot be, or when there is too much.
loop::KernelFunction* FusionSite::State::codeFor(const std::shared_ptr<State>& self,
                                                 const loop::Kernel& kernel, LayoutList& codes,
                                                 const Walk& walk) {
  LayoutKey key;
  const size_t n = kernel.accesses.size();
  for (size_t a = 0; a < n; ++a) {
    auto step = static_cast<uint64_t>(laneStep(kernel, walk, a));
    key.bits[a / 32] |= step << (a % 32 * 2);
  }
  key.bits.back() = static_cast<uint64_t>(walk.nested) << 1 | walk.across_rows;
  auto find = [&]() -> CompiledLayout* {
    for (CompiledLayout* c = codes.newest.load(std::memory_order_acquire); c; c = c->older) {
      if (c->key == key) return c;
    }
    return nullptr;
  };
  if (CompiledLayout* code = find()) return code->function.load(std::memory_order_acquire);
  if (isFull(codes)) return nullptr;
  CompiledLayout* added;
  {
    std::lock_guard lock(mutex);
    if (CompiledLayout* code = find()) return code->function.load(std::memory_order_acquire);
    if (isFull(codes)) return nullptr;
    num_codes.fetch_add(1, std::memory_order_relaxed);
    CompiledLayout* newest = codes.newest.load();
    added = new CompiledLayout;
    added->count = newest ? newest->count + 1 : 1;
    added->key = key;
    added->layout.across_rows = walk.across_rows;
    added->layout.nested = walk.nested;
    for (size_t a = 0; a < n; ++a) added->layout.steps.push_back(laneStep(kernel, walk, a));
    added->older = newest;
    codes.newest.store(added, std::memory_order_release);
  }
  kernels.fetch_add(1, std::memory_order_relaxed);
  submitCompile(
      [self, added, &kernel] {
        try {
          loop::CompiledKernel code = loop::kernelCompiler()(self->name, kernel, added->layout);
          added->memory = std::move(code.memory);
          added->function.store(code.function, std::memory_order_release);
        } catch (const std::exception& e) {
          GRAPH_DEBUG("{}: {}", self->name, e.what());
          failures.fetch_add(1, std::memory_order_relaxed);
        }
      },
      CompileStart::Later);
  return added->function.load(std::memory_order_acquire);
}

// False while some of the code that the launch needs is missing.
bool FusionSite::State::findCode(const std::shared_ptr<State>& self, Variant& variant, size_t k,
                                 Launch& launch) {
  const loop::Kernel& kernel = variant.group.kernels[k];
  Split* split = variant.splits[k].get();
  launch.cut = split ? planCut(kernel, launch.walk) : RowCut();
  if (launch.cut.parts == 1) {
    launch.function = codeFor(self, kernel, variant.codes[k], launch.walk);
    return launch.function != nullptr;
  }
  launch.split = &split->rows;
  launch.stages.clear();
  for (size_t s = 0; s < split->codes.size(); ++s) {
    const loop::RowStage& stage = split->rows.stages[s];
    const bool per_row = split->rows.ends_per_row && s + 1 == split->codes.size();
    launch.stages.push_back(
        codeFor(self, stage.kernel, split->codes[s], stageWalk(stage, launch.walk, per_row)));
  }
  return std::ranges::all_of(launch.stages, [](auto* function) { return function != nullptr; });
}

FusionSite::State::Fit FusionSite::State::prepare(const std::shared_ptr<State>& self,
                                                  Variant& variant, GroupCall& call,
                                                  Launch* launches) {
  const loop::LoweredGroup& group = variant.group;
  if (!call.numbersFit(group)) return Fit::NotNow;
  if (!call.follow(group)) return Fit::Differs;
  for (size_t k = 0; k < group.kernels.size(); ++k) {
    if (!call.place(group, k, launches[k])) return Fit::Differs;
  }
  if (!call.mayWrite(group, std::span(launches, group.kernels.size()))) return Fit::NotNow;
  for (size_t k = 0; k < group.kernels.size(); ++k) {
    if (!call.planWalk(group, k, launches[k])) return Fit::NotNow;
    if (variant.device_codes[k]) continue;
    if (!findCode(self, variant, k, launches[k])) return Fit::NotNow;
  }
  return Fit::Runs;
}

bool FusionSite::State::runOnDevice(Variant& variant, Device device, Launch* launches,
                                    const std::vector<Tensor>& outputs) {
  GroupBackend& backend = *groupBackend(device.type);
  std::array<GroupBackend::Launch, kMaxKernels> queued;
  try {
    for (size_t k = 0; k < variant.group.kernels.size(); ++k) {
      const loop::Kernel& kernel = variant.group.kernels[k];
      Launch& launch = launches[k];
      placeOutputs(kernel, launch, outputs);
      queued[k] = {variant.device_codes[k].get(), &launch.walk,
                   std::span<const Touch>(launch.touches.data(), kernel.accesses.size()),
                   std::span<const int64_t>(launch.numbers.data(), kernel.numbers.size())};
    }
    backend.launch(device, std::span(queued).first(variant.group.kernels.size()));
    return true;
  } catch (const loop::Unsupported& e) {
    GRAPH_DEBUG("{}: {}", name, e.what());
    failures.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
}

FusionSite::FusionSite(const Node& group) : state_(std::make_shared<State>()) {
  state_->body = group.subgraph(attr::Subgraph);
  state_->name = fusionGroupName(*state_->body);
  for (const Node* node : state_->body->nodes()) {
    const Operator* op = node->maybeOperator();
    state_->writes = state_->writes || (op && op->writtenArguments(*node) != 0);
  }
  const SiteDerivative::Factory* factory = SiteDerivative::factory();
  if (group.kind() != prim::FusionGroup && factory) {
    state_->derivative = factory->make(group);
    state_->only_recorded = group.kind() != prim::DifferentiableGraph;
  }
  for (const Value* v : loop::tensorConstants(*state_->body)) {
    state_->constants.push_back(*constantOf(v));
  }
}
FusionSite::~FusionSite() = default;

const std::string& FusionSite::name() const {
  return state_->name;
}
bool FusionSite::writes() const {
  return state_->writes;
}
const Graph& FusionSite::body() const {
  return *state_->body;
}

std::vector<std::vector<loop::ArgumentInfo>> FusionSite::argumentsMet() const {
  std::vector<std::vector<loop::ArgumentInfo>> met;
  for (auto* v = state_->newest.load(std::memory_order_acquire); v; v = v->older) {
    met.push_back(v->arguments);
  }
  return met;
}

namespace {

// False when a check of some kernel did not hold.
bool runKernels(const loop::LoweredGroup& group, Launch* launches,
                const std::vector<Tensor>& outputs) {
  for (size_t k = 0; k < group.kernels.size(); ++k) {
    const loop::Kernel& kernel = group.kernels[k];
    Launch& launch = launches[k];
    placeOutputs(kernel, launch, outputs);
    int64_t flag = 0;
    const std::span<const Touch> touches(launch.touches.data(), kernel.accesses.size());
    const std::span<const int64_t> numbers(launch.numbers.data(), kernel.numbers.size());
    if (launch.cut.parts > 1) {
      runSplit(kernel, *launch.split, launch.cut, launch.walk, touches, numbers, &flag,
               launch.stages);
    } else {
      runWalk(kernel, launch.walk, touches, numbers, &flag, launch.function);
    }
    if (flag != 0) return false;
  }
  return true;
}

}  // namespace

namespace {

const SiteDerivative::Factory* installed_factory = nullptr;

bool anyHasHistory(const IValue* given, size_t n) {
  return std::any_of(given, given + n, [](const IValue& v) {
    if (!v.isTensor()) return false;
    const auto& t = static_cast<const TensorImpl&>(*v.rawObject());
    return t.requires_grad || t.history;
  });
}

}  // namespace

namespace {
// The last is that of aot/. A lazy device has none: its calls are recorded one by one.
std::atomic<GroupBackend*> cuda_backend{nullptr}, meta_backend{nullptr}, other_backend{nullptr};
std::atomic<GroupBackend*>* backendOf(DeviceType type) {
  if (type == DeviceType::CPU || type == kLazy) return nullptr;
  return type == DeviceType::CUDA   ? &cuda_backend
         : type == DeviceType::Meta ? &meta_backend
                                    : &other_backend;
}

thread_local bool writes_over = false;
}  // namespace

WriteOverScope::WriteOverScope() : before_(std::exchange(writes_over, true)) {}
WriteOverScope::~WriteOverScope() {
  writes_over = before_;
}
bool WriteOverScope::isOpen() {
  return writes_over;
}

GroupBackend* groupBackend(DeviceType type) {
  const auto* backend = backendOf(type);
  return backend ? backend->load(std::memory_order_acquire) : nullptr;
}
bool mustStayOnThread() {
  const auto must = [](DeviceType type) {
    GroupBackend* backend = groupBackend(type);
    return backend && backend->mustStayOnThread();
  };
  return must(DeviceType::CUDA) || must(DeviceType::Meta);
}
void setGroupBackend(DeviceType type, GroupBackend* backend) {
  auto* const kept = backendOf(type);
  WICK_ASSERT(kept, "no groups are kept for this type of device");
  kept->store(backend);
}

void SiteDerivative::setFactory(const Factory* factory) {
  installed_factory = factory;
}
const SiteDerivative::Factory* SiteDerivative::factory() {
  return installed_factory;
}

bool FusionSite::run(const IValue* given, size_t num_given, IValue* results, uint64_t dying) {
  if (state_->derivative && recordsGradients() && anyHasHistory(given, num_given)) {
    const auto forward = [&] {
      const BelowRecorder below;
      return run(given, num_given, results, 0);
    };
    return state_->derivative->run(given, num_given, results, state_->body->outputs().size(),
                                   forward);
  }
  if (state_->only_recorded) return false;
  if (state_->derivative && state_->derivative->computesAlone()) {
    return state_->derivative->compute(given, num_given, results, state_->body->outputs().size());
  }
  auto fall_back = [] {
    fallbacks.add();
    return false;
  };
  const size_t n = num_given + state_->constants.size();
  Arguments arguments;
  Key key;
  if (n > kMaxArguments) return fall_back();
  for (size_t i = 0; i < num_given; ++i) arguments[i] = &given[i];
  for (size_t i = num_given; i < n; ++i) arguments[i] = &state_->constants[i - num_given];
  if (!describe(arguments, n, key)) return fall_back();
  const bool on_cpu = key.device.isCpu();
  if (on_cpu ? jitMode() == JitMode::Off : !groupBackend(key.device.type)) return fall_back();
  const std::span<const IValue* const> all(arguments.data(), n);
  GroupCall call(all, key.ordered, key.device);
  // Most groups are one kernel.
  Launch one;
  std::unique_ptr<Launch[]> several;
  Launch* launches = nullptr;
  auto prepare = [&](State::Variant& variant) {
    if (!variant.usable) return State::Fit::NotNow;
    launches = &one;
    if (variant.group.kernels.size() > 1) {
      several.reset(new Launch[variant.group.kernels.size()]);
      launches = several.get();
    }
    return state_->prepare(state_, variant, call, launches);
  };
  State::Fit fit = State::Fit::Differs;
  State::Variant* variant = nullptr;
  while (fit == State::Fit::Differs && (variant = state_->next(key, variant))) {
    fit = prepare(*variant);
  }
  if (!variant) {
    variant = state_->add(key, all);
    if (variant) fit = prepare(*variant);
  }
  if (fit != State::Fit::Runs) return fall_back();
  const loop::LoweredGroup& group = variant->group;
  const bool over =
      on_cpu || (WriteOverScope::isOpen() && groupBackend(key.device.type)->writesOver(key.device));
  const std::vector<Tensor> outputs = call.makeOutputs(
      group, std::span<const Launch>(launches, group.kernels.size()), over ? dying : 0);
  if (!(on_cpu ? runKernels(group, launches, outputs)
               : state_->runOnDevice(*variant, key.device, launches, outputs))) {
    return fall_back();
  }
  for (size_t i = 0; i < group.results - group.written; ++i) results[i] = IValue(outputs[i]);
  launches_made.add();
  return true;
}

bool FusionSite::isFull() const {
  return state_->full.load(std::memory_order_relaxed);
}

std::string fusionGroupName(const Graph& body) {
  constexpr size_t kMaxLength = 60;
  std::string name = "fused";
  for (const Node* node : body.nodes()) {
    // A joint graph is named by the graph that it holds.
    if (node->kind() == prim::DifferentiableGraph) {
      return fusionGroupName(*node->subgraph(attr::Subgraph));
    }
    std::string_view kind = node->kind().qualString();
    if (kind.starts_with("prim::")) continue;
    name += "_";
    for (char c : kind.substr(kind.rfind(':') + 1)) {
      name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    if (name.size() > kMaxLength) return name.substr(0, kMaxLength);
  }
  return name;
}

FusionStatistics fusionStatistics() {
  return {launches_made.sum(), fallbacks.sum(), variants.load(), kernels.load(), failures.load()};
}

}  // namespace wick
