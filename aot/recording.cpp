#include "aot/recording.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>

#include "aot/complex.h"
#include "aot/device.h"
#include "aot/elements.h"
#include "aot/factorizations.h"
#include "aot/random.h"
#include "aot/refusal.h"
#include "aot/target.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/memory_overlap.h"
#include "core/scalar.h"
#include "runtime/fusion/launch.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

thread_local Recording* current_recording = nullptr;

// Buffers have addresses that are not memory. Views may begin far in front of a buffer or behind it,
// where they read nothing, so buffers lie far apart.
constexpr int64_t kFirstAddress = int64_t{1} << 44;
constexpr int64_t kApart = int64_t{1} << 38;
constexpr size_t kMostBuffers = size_t{1} << 18;

bool covers(const Tensor& t) {
  return t.offset() == 0 && t.isNonOverlappingAndDense() &&
         t.storage()->bytes() == static_cast<size_t>(t.numel()) * t.itemSize();
}

bool isSameView(const Tensor& a, const Tensor& b) {
  return a.storage().get() == b.storage().get() && a.offset() == b.offset() &&
         a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes()) &&
         std::ranges::equal(a.strides(), b.strides());
}

void requireDense(const std::string& name, const Tensor& result) {
  if (result.kind() != TensorKind::Dense || isQuantized(result.dtype())) {
    throw NotAhead(
        fmt::format("the result {}: {} is not available ahead of time", name, shown(result)));
  }
}

}  // namespace

std::string withoutDevice(std::string message) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"not available on device ahead", "not available ahead of time"},
      // Kernels of quantized tensors alone say so (runtime/ops/quantized/values.cpp).
      {"expected tensors on the CPU, got one on ahead",
       "quantized tensors are not compiled ahead of time"},
      {"got one on ahead", "got one whose elements are known only when the compiled model runs"},
      {"found at least two devices, ahead and cpu!",
       "one is known now, and one only when the compiled model runs"},
      {" on ahead", ""},
  };
  for (const auto& [device, words] : kWords) {
    for (size_t at = 0; (at = message.find(device, at)) != std::string::npos; at += words.size()) {
      message.replace(at, device.size(), words);
    }
  }
  return message;
}

Recording::Recording() : before_(current_recording) {
  current_recording = this;
}
Recording::~Recording() {
  current_recording = before_;
}

Recording& Recording::current() {
  if (!current_recording) {
    throw NotAhead(
        "a tensor that stands for one of the compiled model is used outside of the build that made "
        "it");
  }
  return *current_recording;
}

void* Recording::allocate(size_t bytes) {
  if (program_.buffers.size() == kMostBuffers) {
    throw NotAhead(fmt::format("the program makes more than {} tensors", kMostBuffers));
  }
  // Positions in a buffer must not reach the next one's.
  if (bytes > static_cast<size_t>(kApart / 2)) {
    throw NotAhead(
        fmt::format("the program makes a tensor of {} bytes, which is too large", bytes));
  }
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.loop = in_loop_;
  const auto number = static_cast<int64_t>(program_.buffers.size());
  program_.buffers.push_back(std::move(buffer));
  return reinterpret_cast<void*>(kFirstAddress + number * kApart);
}

uint32_t Recording::bufferAt(int64_t address) const {
  if (address < kFirstAddress / 2) {
    throw NotAhead("an element is looked for in a tensor without elements");
  }
  const int64_t number = (address - kFirstAddress + kApart / 2) / kApart;
  WICK_ASSERT(number >= 0 && number < static_cast<int64_t>(program_.buffers.size()),
              "no buffer of the recording lies there");
  return static_cast<uint32_t>(number);
}

Place Recording::placeOf(const Tensor& t) const {
  WICK_ASSERT(t.device().type == kAhead, "a tensor on {} among those that are compiled",
              t.device().str());
  const auto base = reinterpret_cast<int64_t>(t.storage()->data());
  return {bufferAt(base), t.offset() * static_cast<int64_t>(t.itemSize())};
}

Tensor Recording::addInput(const std::string& name, const Tensor& example) {
  const Tensor t =
      Tensor::emptyStrided(example.sizes(), example.strides(), example.dtype(), Device{kAhead, -1});
  TensorSlot slot;
  slot.name = name;
  slot.dtype = example.dtype();
  slot.layout = {DimVector(example.sizes()), DimVector(example.strides())};
  if (t.numel() > 0) {
    slot.place = placeOf(t);
    Buffer& buffer = program_.buffers[slot.place.buffer];
    buffer.kind = Buffer::Kind::Input;
    buffer.index = static_cast<uint32_t>(program_.inputs.size());
  }
  program_.inputs.push_back(std::move(slot));
  return t;
}

Tensor Recording::constant(const Tensor& on_cpu) {
  if (!on_cpu.device().isCpu()) return on_cpu;
  if (on_cpu.kind() != TensorKind::Dense) {
    throw NotAhead(fmt::format("a {} is not available ahead of time", shown(on_cpu)));
  }
  Tensor& whole = constants_[on_cpu.storage().get()];
  const Storage& memory = *on_cpu.storage();
  if (!whole.defined()) {
    held_.push_back(on_cpu);  // so that no other storage gets the address
    const auto bytes = static_cast<int64_t>(memory.bytes());
    whole = Tensor::empty({bytes}, DType::Byte, Device{kAhead, -1});
    if (bytes > 0) {
      Buffer& buffer = program_.buffers[placeOf(whole).buffer];
      buffer.kind = Buffer::Kind::Constant;
      buffer.data = Tensor::fromStorage(on_cpu.storage(), DType::Byte, {bytes}, {1}, 0);
    }
  }
  return Tensor::fromStorage(whole.storage(), on_cpu.dtype(), on_cpu.sizes(), on_cpu.strides(),
                             on_cpu.offset());
}

void Recording::addOutput(const std::string& name, const Tensor& result) {
  requireDense(name, result);
  const Tensor here = constant(result);
  TensorSlot slot;
  slot.name = name;
  slot.dtype = here.dtype();
  slot.layout = {DimVector(here.sizes()), contiguousStrides(here.sizes())};
  if (here.numel() > 0) {
    // Row-major, in memory of its own, which nothing else reads afterwards.
    const Buffer& buffer = program_.buffers[placeOf(here).buffer];
    const bool taken = std::ranges::any_of(program_.outputs, [&](const TensorSlot& other) {
      return !other.layout.sizes.empty() && other.place.buffer == placeOf(here).buffer;
    });
    Tensor own = here;
    if (buffer.kind != Buffer::Kind::Temporary || !here.isContiguous() || !covers(here) || taken) {
      own = Tensor::empty(here.sizes(), here.dtype(), here.device());
      copy(own, here);
    }
    slot.place = placeOf(own);
    touch(slot.place, false);
    notePairs({{slot.place.buffer, false}});
  }
  program_.outputs.push_back(std::move(slot));
}

void Recording::assign(const Tensor& to, const Tensor& from) {
  requireDense("of a call", from);
  if (to.numel() == 0) return;
  touch(placeOf(to), true);
  copy(to, constant(from));
}

bool Recording::decide(const Place& place) {
  if (!frames_.empty()) {
    throw NotAhead("an element of a tensor decides how to go on, in a loop that stays one");
  }
  if (decisions_.size() == kMostDecisions) {
    throw NotAhead(
        fmt::format("the program goes on in more than {} ways that elements of tensors "
                    "decide one after the other",
                    kMostDecisions));
  }
  touch(place, false);
  const bool value = decisions_.size() >= assumed_.size() || assumed_[decisions_.size()];
  decisions_.push_back({program_.steps.size(), place, value});
  return value;
}

int64_t Recording::size(const Tensor& count, int64_t most, const std::string& by) {
  const Tensor data = count.device().isCpu() ? count : known(count);
  if (data.defined()) return data.to(DType::Long).item<int64_t>();
  if (!frames_.empty()) {
    throw NotAhead(
        fmt::format("{}: elements of a tensor decide a size, in a loop that stays one; all rounds "
                    "have one size",
                    by));
  }
  const Place place = placeOf(count);
  size_t number = 0;
  for (const Decision& d : decisions_) {
    if (!d.size) continue;
    if (d.place.buffer == place.buffer && d.place.offset == place.offset) return *d.size;
    ++number;
  }
  constexpr int64_t kMostValues = 4096;
  if (most >= kMostValues || number == sizes_.refused) {
    throw NotAhead(fmt::format(
        "{}: elements of a tensor decide a size from 0 to {}{}; the program is looked at for each "
        "while building, and there may be {} of them in all",
        by, most,
        number == sizes_.refused && number > 0 ? fmt::format(", behind {} other", number) : "",
        kMostValues));
  }
  if (decisions_.size() == kMostDecisions) {
    throw NotAhead(fmt::format("elements of tensors decide more than {} sizes and conditions",
                               kMostDecisions));
  }
  const bool exchanged = std::ranges::any_of(
      program_.steps, [](const Step& step) { return std::holds_alternative<SwapStep>(step.what); });
  if (exchanged) {
    throw NotAhead(
        fmt::format("{}: elements of a tensor decide a size behind a loop that stays one", by));
  }
  const int64_t value = number < sizes_.values.size() ? sizes_.values[number] : 0;
  if (value > most) {
    impossible_ = true;
    throw NotAhead("a size that cannot be");
  }
  touch(place, false);
  decisions_.push_back({program_.steps.size(), place, true, value, most, by});
  if (asks_.size() == number) asks_.push_back({by, most});
  asks_[number].most = std::max(asks_[number].most, most);
  repeatWindows();
  return value;
}

Tensor Recording::findComputed(const std::string& what, const Tensor& from) const {
  for (const Computed& c : computed_) {
    if (c.what != what || !isSameView(c.from, from)) continue;
    const uint32_t buffer = wholeOf(placeOf(from).buffer);
    const bool written =
        std::any_of(program_.steps.begin() + static_cast<std::ptrdiff_t>(c.step),
                    program_.steps.end(), [&](const Step& step) {
                      return std::ranges::any_of(usesOf(step), [&](const Use& use) {
                        return use.written && wholeOf(use.buffer) == buffer;
                      });
                    });
    if (!written) return c.result;
  }
  return {};
}
void Recording::noteComputed(const std::string& what, const Tensor& from, const Tensor& result) {
  if (frames_.empty()) computed_.push_back({what, from, result, program_.steps.size()});
}

// Behind a size another function of the compiled model begins, which knows nothing of the windows of the one before. Behind
// a further size those are known once already, so each is repeated once.
void Recording::repeatWindows() {
  std::vector<Step> again;
  std::set<uint32_t> repeated;
  int depth = 0;
  for (const Step& step : program_.steps) {
    const auto& what = step.what;
    if (std::holds_alternative<BranchStep>(what) || std::holds_alternative<LoopStep>(what)) ++depth;
    if (std::holds_alternative<EndStep>(what)) --depth;
    const auto* const window = depth == 0 ? std::get_if<WindowStep>(&what) : nullptr;
    if (window && repeated.insert(window->window).second) again.push_back(step);
  }
  std::ranges::move(again, std::back_inserter(program_.steps));
}

void Recording::addAlternate(size_t output, const Tensor& result) {
  if (result.numel() == 0) return;
  touch(placeOf(result), false);
  program_.alternates.emplace_back(placeOf(result).buffer, static_cast<uint32_t>(output));
}
void Recording::noteSizes(size_t output, const DimVector& most, uint32_t decided) {
  program_.outputs[output].most = most;
  program_.outputs[output].decided = decided;
}

void Recording::require(const Tensor& holds, const std::string& message) {
  add("check", BranchStep{placeOf(holds)});
  add("", OtherwiseStep{});
  add("raise", RaiseStep{message});
  add("", EndStep{});
}

void Recording::restart(std::vector<bool> assumed) {
  assumed_ = std::move(assumed);
  decisions_.clear();
  computed_.clear();
  impossible_ = false;
  frames_.clear();
  pending_.clear();
  results_.clear();
  pending_lists_.clear();
  result_lists_.clear();
  pairs_.clear();
  in_loop_ = 0;
  own_steps_ = false;
  program_.inputs.clear();
  program_.outputs.clear();
  std::ranges::move(program_.steps, std::back_inserter(earlier_));
  program_.steps.clear();
  for (Buffer& buffer : program_.buffers) {
    // A constant of a graph may have been copied and then written to in part.
    buffer.written = buffer.copied && buffer.written;
    buffer.read_before = false;
  }
}

Program Recording::take() {
  constants_.clear();
  // A step of a call before belongs to the program when it made a constant of a graph: when nothing writes
  // there in the last call. Those that nobody needs are dropped with all others (aot/plan.h).
  std::vector<bool> written(program_.buffers.size());
  for (const Step& step : program_.steps) {
    for (const Use& use : usesOf(step)) {
      if (use.written) written[use.buffer] = true;
    }
  }
  program_.asks = std::move(asks_);
  std::erase_if(earlier_, [&](const Step& step) {
    const std::vector<Use> uses = usesOf(step);
    // What checks writes nothing, and is among the last call's steps too, as are loops and draws of random numbers.
    return step.kept || std::ranges::none_of(uses, &Use::written) ||
           std::holds_alternative<LoopStep>(step.what) ||
           std::holds_alternative<SwapStep>(step.what) ||
           std::holds_alternative<WindowStep>(step.what) ||
           std::ranges::any_of(uses, [&](const Use& use) {
             const Buffer& buffer = program_.buffers[use.buffer];
             return use.written && (written[use.buffer] ||
                                    (buffer.kind != Buffer::Kind::Temporary && !buffer.copied));
           });
  });
  program_.steps.insert(program_.steps.begin(), std::make_move_iterator(earlier_.begin()),
                        std::make_move_iterator(earlier_.end()));
  earlier_.clear();
  return std::exchange(program_, {});
}

void Recording::touch(const Place& place, bool writes) {
  Buffer& buffer = program_.buffers[place.buffer];
  if (buffer.kind == Buffer::Kind::Window) {
    touch({windows_.at(place.buffer), 0}, writes);
  } else if (writes) {
    if (buffer.kind == Buffer::Kind::Input) {
      throw NotAhead(
          fmt::format("the program writes to its argument '{}'; compiled models leave "
                      "arguments alone",
                      program_.inputs[buffer.index].name));
    }
    buffer.written = true;
  } else if (!buffer.written && buffer.kind == Buffer::Kind::Temporary) {
    buffer.read_before = true;
  }
}

void Recording::clear(const void* memory) {
  add("zeros", FillStep{{bufferAt(reinterpret_cast<int64_t>(memory)), 0}, std::nullopt});
}

void Recording::add(const std::string& name, decltype(Step::what) what) {
  std::vector<decltype(Step::what)> all;
  if (const Target* target = recordedTarget()) {
    all = target->adapted(name, std::move(what));
  } else {
    all.push_back(std::move(what));
  }
  for (decltype(Step::what)& one : all) {
    const auto* const function = std::get_if<FunctionStep>(&one);
    const bool draws = function && drawsNumbers(*function);
    Step step{std::move(one), name, draws};
    if (!own_steps_ && !std::holds_alternative<LoopStep>(step.what)) notePairs(usesOf(step));
    for (const Use& use : usesOf(step)) {
      if (!use.written) touch({use.buffer, 0}, false);
    }
    for (const Use& use : usesOf(step)) {
      if (use.written && !std::holds_alternative<WindowStep>(step.what)) {
        touch({use.buffer, 0}, true);
      }
    }
    if (program_.steps.size() == kMostSteps) {
      throw NotAhead(fmt::format("the program computes more than {} tensors", kMostSteps));
    }
    program_.steps.push_back(std::move(step));
  }
}

Tensor Recording::known(const Tensor& t) const {
  if (t.numel() == 0) return Tensor::empty(t.sizes(), t.dtype());
  const Buffer& buffer = program_.buffers[placeOf(t).buffer];
  if (buffer.kind != Buffer::Kind::Constant || buffer.written) return {};
  return Tensor::fromStorage(buffer.data.storage(), t.dtype(), t.sizes(), t.strides(), t.offset());
}

void Recording::copy(const Tensor& to, const Tensor& from) {
  if (to.numel() == 0) return;
  if (to.device().isCpu()) {
    const Tensor data = known(from);
    if (!data.defined() && from.numel() == 1 && from.dtype() == DType::Bool &&
        to.dtype() == DType::Bool) {
      *static_cast<bool*>(to.rawData()) = decide(placeOf(from));
      return;
    }
    // A program that asks whether factorizations went well is told that they did, and the compiled model raises where
    // they did not.
    const std::optional<std::string> complaint =
        data.defined() ? std::nullopt : complaintOfCodes(from);
    if (complaint) {
      require(ops::all(ops::eqScalar(from, Scalar(int64_t{0}))), *complaint);
      to.fill(0);
      return;
    }
    if (!data.defined()) {
      asked_for_number_ = true;
      throw NotAhead(
          "the elements of a tensor are needed to go on, and are known only when the compiled "
          "model "
          "runs");
    }
    to.copyFrom(data);
    return;
  }
  const Tensor data = from.device().isCpu() ? from : known(from);
  Buffer& target = program_.buffers[placeOf(to).buffer];
  const bool fresh =
      target.kind == Buffer::Kind::Temporary && !target.written && !target.read_before;
  if (data.defined() && fresh && covers(to)) {
    // What is known is copied now.
    const Tensor made = Tensor::emptyStrided(to.sizes(), to.strides(), to.dtype());
    made.copyFrom(data);
    target.kind = Buffer::Kind::Constant;
    target.copied = true;
    target.data = Tensor::fromStorage(made.storage(), DType::Byte,
                                      {static_cast<int64_t>(target.bytes)}, {1}, 0);
    return;
  }
  const Tensor source = constant(from);
  if (isComplex(source.dtype()) || isComplex(to.dtype())) return copyComplex(to, source);
  auto kernel = std::make_shared<loop::Kernel>();
  const loop::TensorLayout layout = layoutOf(*to.impl());
  if (to.dim() > loop::kMaxRank) {
    throw NotAhead(fmt::format("a copy of a tensor of {} dimensions is not available ahead of time",
                               to.dim()));
  }
  kernel->rank = layout.rank;
  loop::Access access;
  access.dims.fill(-1);
  for (int d = 0; d < layout.rank; ++d)
    access.dims[static_cast<size_t>(d)] = static_cast<int8_t>(d);
  access.argument = 0;
  access.dtype = source.dtype();
  kernel->accesses.push_back(access);
  access.dtype = to.dtype();
  kernel->accesses.push_back(access);
  const ScalarExpr read = kernel->leaf({loop::Leaf::Kind::Load, 0, source.dtype()});
  kernel->stores.push_back({kernel->expression.convert(read, to.dtype()), 1, false});
  std::array<Touch, 2> touches;
  std::array<int64_t, loop::kMaxRank> sizes{};
  for (size_t i = 0; i < 2; ++i) {
    const Tensor& t = i == 0 ? source : to;
    touches[i].base = static_cast<char*>(t.rawData());
    touches[i].steps.fill(0);
    for (int64_t d = 0; d < t.dim(); ++d) {
      touches[i].steps[static_cast<size_t>(d)] = t.stride(d) * static_cast<int64_t>(t.itemSize());
      sizes[static_cast<size_t>(d)] = to.size(d);
    }
  }
  // Neighbours of the result side by side.
  std::array<int, loop::kMaxRank> order;
  for (int d = 0; d < layout.rank; ++d) order[static_cast<size_t>(d)] = layout.rank - 1 - d;
  std::stable_sort(order.begin(), order.begin() + layout.rank, [&](int a, int b) {
    return std::abs(layout.strides[static_cast<size_t>(a)]) <
           std::abs(layout.strides[static_cast<size_t>(b)]);
  });
  Walk walk;
  planWalk(*kernel, sizes, touches,
           std::span<const int>(order.data(), static_cast<size_t>(layout.rank)), walk);
  codegen::CppWalk way = wayOf(*kernel, walk);
  this->kernel(
      "copy", kernel, std::move(way),
      {reinterpret_cast<int64_t>(touches[0].base), reinterpret_cast<int64_t>(touches[1].base)}, {});
}

void Recording::kernel(const std::string& name, const std::shared_ptr<const loop::Kernel>& kernel,
                       codegen::CppWalk walk, const std::vector<int64_t>& addresses,
                       std::vector<uint64_t> numbers, std::string complaint) {
  KernelStep step{kernel, std::move(walk), {}, std::move(numbers), std::move(complaint)};
  const Place first = {bufferAt(addresses.back()), 0};  // a store
  for (size_t a = 0; a < addresses.size(); ++a) {
    if (kernel->accesses[a].isIndex()) {
      step.places.push_back(first);
      continue;
    }
    if (addresses[a] < kFirstAddress / 2) {
      // Of a tensor without elements nothing is read.
      step.places.push_back({bufferAt(reinterpret_cast<int64_t>(allocate(0))), 0});
      continue;
    }
    const uint32_t buffer = bufferAt(addresses[a]);
    step.places.push_back({buffer, addresses[a] - kFirstAddress - int64_t{buffer} * kApart});
  }
  add(name, std::move(step));
}

codegen::CppWalk wayOf(const loop::Kernel& kernel, const Walk& walk) {
  const size_t n = kernel.accesses.size();
  const auto loopOf = [&](int64_t size, const std::array<int64_t, kMaxAccesses>& steps) {
    return codegen::CppLoop{size, {steps.begin(), steps.begin() + static_cast<int64_t>(n)}};
  };
  codegen::CppWalk way;
  way.row = loopOf(walk.elements, walk.element_steps);
  for (size_t l = 0; l < static_cast<size_t>(walk.nested); ++l) {
    way.pieces.push_back(loopOf(walk.nested_sizes[l], walk.nested_steps[l]));
  }
  for (size_t d = 0; d < static_cast<size_t>(walk.outer); ++d) {
    way.outer.push_back(loopOf(walk.sizes[d], walk.steps[d]));
  }
  way.across_rows = walk.across_rows;
  way.tiled = walk.tiled;
  way.parallel = walk.rows() * walk.pointsOfRow() > grainOf(kernel);
  return way;
}

namespace {

class AheadBackend : public DeviceBackend {
 public:
  int count() override { return 1; }
  Device current() override { return {kAhead, -1}; }
  bool hasMemory() const override { return false; }
  void* allocate(Device, size_t bytes) override { return Recording::current().allocate(bytes); }
  void free(Device, void*, size_t) noexcept override {}
  void clear(Device, void* memory, size_t bytes) override {
    if (bytes > 0) Recording::current().clear(memory);
  }
  void copyBytes(void*, Device, const void*, Device, size_t) override {
    throw NotAhead("a tensor's memory is grown, and what it held is not known yet");
  }
  void copyElements(const Tensor& to, const Tensor& from) override { copyTensor(to, from); }
  void copyTensor(const Tensor& to, const Tensor& from) override {
    const Overlap overlap = overlapOf(to, from);
    const bool apart = overlap == Overlap::None || overlap == Overlap::Full;
    // No element is written before it is read.
    Recording::current().copy(to, apart ? from : from.clone(MemoryFormat::Contiguous));
  }
  void synchronize(Device) override {}
};

const struct Registration {
  AheadBackend backend;
  Registration() { setDeviceBackend(kAhead, &backend); }
}& registration = *new Registration;

}  // namespace

Tensor here(const Tensor& t) {
  return t.defined() ? Recording::current().constant(t) : t;
}

}  // namespace wick::aot
