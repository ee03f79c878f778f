#include "runtime/cuda/dnn.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/made_once.h"

namespace wick::cuda::dnn {

namespace {

constexpr const char* kNames[] = {"libcudnn.so.9", "libcudnn.so"};
constexpr int64_t kMostWorkspace = int64_t{1} << 30;

using Status = int;

#define WICK_FORALL_DNN_FUNCTIONS(_)                                                         \
  _(create, "cudnnCreate", (void** handle))                                                  \
  _(setStream, "cudnnSetStream", (void* handle, Stream stream))                              \
  _(createDescriptor, "cudnnBackendCreateDescriptor", (int kind, void** descriptor))         \
  _(destroyDescriptor, "cudnnBackendDestroyDescriptor", (void* descriptor))                  \
  _(finalize, "cudnnBackendFinalize", (void* descriptor))                                    \
  _(set, "cudnnBackendSetAttribute",                                                         \
    (void* descriptor, int attribute, int type, int64_t count, const void* values))          \
  _(get, "cudnnBackendGetAttribute",                                                         \
    (void* descriptor, int attribute, int type, int64_t most, int64_t* count, void* values)) \
  _(execute, "cudnnBackendExecute", (void* handle, void* plan, void* arguments))

struct Functions {
  WICK_FORALL_DNN_FUNCTIONS(WICK_FUNCTION_FIELD)
  const char* (*errorText)(Status) = nullptr;
};

void find(const Library& library, Functions& functions) {
  WICK_FORALL_DNN_FUNCTIONS(WICK_FIND_FUNCTION)
  library.find("cudnnGetErrorString", functions.errorText);
}
const Functions& functions() {
  static const auto& found = *new LibraryFunctions<Functions>(kNames, find);
  return found.get();
}

void checkStatus(Status status, const char* op) {
  WICK_CHECK(status == 0, "{}: cuDNN: {}", op, functions().errorText(status));
}

// What is told of engines.
constexpr int kTensorCore = 0, kDownConverts = 1, kReducedSums = 2, kNondeterministic = 4,
              kLargeWinograd = 8;
constexpr int kMostNotes = 32;

bool isFit(const char* op, const Descriptor& choice, bool may_reduce) {
  Descriptor engine(op, Kind::Engine);
  void* raw = engine.raw();
  choice.get(Attribute::ChoiceEngine, ValueType::Descriptor, 1, &raw);
  std::array<int, kMostNotes> notes{};
  const int64_t count = std::min<int64_t>(
      kMostNotes, engine.get(Attribute::EngineNotes, ValueType::Note, kMostNotes, notes.data()));
  return std::none_of(notes.begin(), notes.begin() + count, [&](int note) {
    if (note == kNondeterministic || note == kLargeWinograd) return true;
    return !may_reduce && (note == kTensorCore || note == kDownConverts || note == kReducedSums);
  });
}

std::vector<Descriptor> choicesFor(const char* op, const Descriptor& graph, int mode) {
  Descriptor heuristic(op, Kind::Heuristic);
  heuristic.set(Attribute::HeuristicGraph, graph);
  heuristic.set(Attribute::HeuristicMode, ValueType::HeuristicMode, 1, &mode);
  std::vector<Descriptor> choices;
  if (!heuristic.tryFinalize()) return choices;
  constexpr int64_t kMost = 64;
  const int64_t count = std::min(
      kMost, heuristic.get(Attribute::HeuristicResults, ValueType::Descriptor, 0, nullptr));
  std::vector<void*> raw;
  for (int64_t i = 0; i < count; ++i) {
    choices.emplace_back(op, Kind::EngineChoice);
    raw.push_back(choices.back().raw());
  }
  const int64_t filled = count == 0 ? 0
                                    : heuristic.get(Attribute::HeuristicResults,
                                                    ValueType::Descriptor, count, raw.data());
  while (static_cast<int64_t>(choices.size()) > filled) choices.pop_back();
  return choices;
}

}  // namespace

int typeOf(const char* op, DType type) {
  constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBFloat16 = 9;
  switch (type) {
    case DType::Float:
      return kFloat;
    case DType::Double:
      return kDouble;
    case DType::Half:
      return kHalf;
    case DType::BFloat16:
      return kBFloat16;
    default:
      throwRuntimeError("{}: no convolution of {} tensors on CUDA devices", op, toString(type));
  }
}

Descriptor::Descriptor(const char* op, Kind kind) : op_(op) {
  checkStatus(functions().createDescriptor(static_cast<int>(kind), &made_), op);
}
Descriptor::~Descriptor() {
  if (made_) functions().destroyDescriptor(made_);
}
Descriptor::Descriptor(Descriptor&& other) noexcept
    : op_(other.op_), made_(std::exchange(other.made_, nullptr)) {}

void Descriptor::set(Attribute attribute, ValueType type, int64_t count, const void* values) {
  checkStatus(
      functions().set(made_, static_cast<int>(attribute), static_cast<int>(type), count, values),
      op_);
}
void Descriptor::finalize() {
  checkStatus(functions().finalize(made_), op_);
}
bool Descriptor::tryFinalize() {
  return functions().finalize(made_) == 0;
}
int64_t Descriptor::get(Attribute attribute, ValueType type, int64_t count, void* values) const {
  int64_t found = 0;
  checkStatus(functions().get(made_, static_cast<int>(attribute), static_cast<int>(type), count,
                              &found, values),
              op_);
  return found;
}

Descriptor describe(const char* op, int64_t id, int type, IntSpan sizes, IntSpan strides,
                    int64_t alignment, bool is_virtual) {
  Descriptor tensor(op, Kind::Tensor);
  tensor.set(Attribute::TensorType, ValueType::DataType, 1, &type);
  tensor.set(Attribute::TensorSizes, sizes);
  tensor.set(Attribute::TensorStrides, strides);
  tensor.set(Attribute::TensorId, ValueType::Int, 1, &id);
  tensor.set(Attribute::TensorAlignment, ValueType::Int, 1, &alignment);
  tensor.set(Attribute::TensorIsVirtual, ValueType::Bool, 1, &is_virtual);
  tensor.finalize();
  return tensor;
}

Handle& handleOf(const char* op, CudaDevice& device) {
  static auto& handles = *new MadeOnce<const CudaDevice*, Handle>;
  return handles.of(&device, [&] {
    auto made = std::make_unique<Handle>();
    checkStatus(functions().create(&made->raw), op);
    return made;
  });
}

std::unique_ptr<Plan> Plan::make(const char* op, Handle& handle,
                                 std::span<const Descriptor* const> operations, bool may_reduce) {
  Descriptor graph(op, Kind::Graph);
  std::vector<void*> raw;
  for (const Descriptor* operation : operations) raw.push_back(operation->raw());
  graph.set(Attribute::GraphOperations, ValueType::Descriptor, static_cast<int64_t>(raw.size()),
            raw.data());
  graph.set(Attribute::GraphHandle, ValueType::Handle, 1, &handle.raw);
  if (!graph.tryFinalize()) return nullptr;
  constexpr int kBest = 3, kFallback = 2;
  for (const int mode : {kBest, kFallback}) {
    for (Descriptor& choice : choicesFor(op, graph, mode)) {
      if (!isFit(op, choice, may_reduce)) continue;
      Descriptor plan(op, Kind::Plan);
      plan.set(Attribute::PlanHandle, ValueType::Handle, 1, &handle.raw);
      plan.set(Attribute::PlanChoice, choice);
      if (!plan.tryFinalize()) continue;
      int64_t workspace = 0;
      plan.get(Attribute::PlanWorkspace, ValueType::Int, 1, &workspace);
      if (workspace > kMostWorkspace) continue;
      std::unique_ptr<Plan> made(new Plan(std::move(plan)));
      made->workspace_ = workspace;
      return made;
    }
  }
  return nullptr;
}

void Plan::run(const char* op, Handle& handle, Device device, std::span<const int64_t> ids,
               std::span<void* const> pointers) const {
  checkStatus(functions().setStream(handle.raw, currentStream()), op);
  const Ref<Storage> workspace = Storage::allocate(static_cast<size_t>(workspace_), device);
  void* const memory = workspace->data();
  Descriptor arguments(op, Kind::Arguments);
  arguments.set(Attribute::ArgumentsIds, ids);
  arguments.set(Attribute::ArgumentsPointers, ValueType::Pointer,
                static_cast<int64_t>(pointers.size()), pointers.data());
  arguments.set(Attribute::ArgumentsWorkspace, ValueType::Pointer, 1, &memory);
  arguments.finalize();
  checkStatus(functions().execute(handle.raw, plan_.raw(), arguments.raw()), op);
  noteLaunch("a convolution");
}

}  // namespace wick::cuda::dnn
