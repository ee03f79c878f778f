// Each operator is called in one of four ways, chosen once:
// - Direct: its own kernel gets the lazy tensors, because it looks at no element itself: it asks what
//   tensors are, makes other views, or copies and calls other operators, which come here.
// - View: the same, and what it did is noted, so that the value of the view is made by this operator.
// - Recorded: the call becomes a record. What it would write to is copied in the record, and the
//   copies are written to the tensors.
// - Immediate: the arguments are evaluated and the operator runs. This is also what recorded
//   operators do where only the run can tell what the results will be.
#include "lazy/recorder.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "autograd/formula.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ir/device_kernels.h"
#include "ir/kind_kernels.h"
#include "lazy/base.h"
#include "lazy/device_below.h"
#include "lazy/effects.h"
#include "lazy/immediate.h"
#include "lazy/infer.h"
#include "lazy/lazy.h"
#include "lazy/places.h"
#include "lazy/program.h"
#include "runtime/interpreter/call_places.h"
#include "runtime/ops/boxing.h"

namespace wick::lazy {

namespace {

enum class Way : uint8_t { Direct, View, Recorded, Immediate };

bool holdsTensors(const Type& type) {
  if (type.kind() == TypeKind::Tensor) return true;
  return std::ranges::any_of(type.contained(), [](const TypePtr& t) { return holdsTensors(*t); });
}

bool givesTensors(const Operator& op) {
  const FunctionSchema& schema = op.schema();
  return schema.isVarret() || std::ranges::any_of(schema.returns(), [](const Argument& r) {
           return holdsTensors(*r.type);
         });
}
// Whether all results are tensors and lists of them.
bool givesOnlyTensors(const Operator& op) {
  const FunctionSchema& schema = op.schema();
  if (schema.isVarret() || schema.isVararg() || schema.returns().empty()) return false;
  return std::ranges::all_of(schema.returns(), [](const Argument& r) {
    if (r.type->kind() == TypeKind::Tensor) return true;
    const auto* list = r.type->as<ListType>();
    return list && list->element()->kind() == TypeKind::Tensor;
  });
}

// Fills, which read nothing of what they write to.
bool isFill(const Operator& op) {
  static const Symbol kFill = Symbol::fromQualString("aten::fill_"),
                      kZero = Symbol::fromQualString("aten::zero_");
  return op.symbol() == kFill || op.symbol() == kZero;
}

// PyTorch's schemas call them views, because its tensors have a flag for it.
bool isConjugate(const Operator& op) {
  static const Symbol kConj = Symbol::fromQualString("aten::conj"),
                      kPlain = Symbol::fromQualString("aten::_conj");
  return op.symbol() == kConj || op.symbol() == kPlain;
}

// Whether an argument has a gradient that has to be recorded.
bool hasHistory(const IValue& v) {
  if (v.isTensor()) {
    const auto& t = *static_cast<const TensorImpl*>(v.rawObject());
    return t.requires_grad || t.history;
  }
  return v.isList() && std::ranges::any_of(v.elements(), hasHistory);
}

// Returns whether a call draws random numbers. Some operators do for a dropout alone.
bool draws(const Operator& op, std::span<const IValue> args) {
  if (!op.has(kNondeterministic)) return false;
  const auto rate = op.schema().argumentIndex("dropout"),
             train = op.schema().argumentIndex("train");
  if (!rate || *rate >= args.size()) return true;
  const bool off = args[*rate].isDouble() && args[*rate].toDouble() == 0;
  const bool idle =
      train && *train < args.size() && args[*train].isBool() && !args[*train].toBool();
  return !off && !idle;
}

Way findWay(const Operator& op, bool draws) {
  const bool neutral = isDeviceNeutral(op);
  if (findDeviceKernel(op, kLazy)) return Way::Direct;
  if (op.form() != Operator::Form::Base) {
    if (op.form() == Operator::Form::Inplace && neutral && isFill(op)) return Way::Direct;
    return draws || op.has(kSideEffects) || !givesOnlyTensors(op) ? Way::Immediate : Way::Recorded;
  }
  if (op.makesViews()) return isConjugate(op) ? Way::Recorded : Way::View;
  if (neutral && (joinsDevices(op) || op.has(kChangesMetadata) || op.has(kAnyKind) ||
                  op.tensorArguments() == 0 || !givesTensors(op))) {
    return Way::Direct;
  }
  const bool acts = op.has(kSideEffects) && !hasRecordedEffects(op);
  if (acts || draws || !givesOnlyTensors(op)) {
    return Way::Immediate;
  }
  return Way::Recorded;
}

struct Ways {
  Way usually, drawing;
  bool of_others;  // its gradient is that of the operators that its kernel calls
};
// Operators live as long as the process. Synchronized by mutex().
Way wayOf(const Operator& op, std::span<const IValue> args) {
  static auto& known = *new std::unordered_map<const Operator*, Ways>;
  auto at = known.find(&op);
  if (at == known.end()) {
    const bool of_others = op.form() == Operator::Form::Base &&
                           autograd::ruleOf(op).kind() == autograd::Rule::Kind::Others &&
                           (op.writtenArguments() == 0 || isDeviceNeutral(op));
    at = known.emplace(&op, Ways{findWay(op, false), findWay(op, true), of_others}).first;
  }
  const Ways& ways = at->second;
  const Way usually = draws(op, args) ? ways.drawing : ways.usually;
  const bool made_of_others = ways.of_others && usually != Way::View && gradEnabled() &&
                              std::ranges::any_of(args, hasHistory);
  return made_of_others ? Way::Direct : usually;
}

thread_local const char* cause = nullptr;
std::atomic<bool> in_use{false};

class CauseScope {
 public:
  explicit CauseScope(const Operator& op)
      : before_(std::exchange(cause, cause ? cause : op.schema().name().c_str())) {}
  ~CauseScope() { cause = before_; }
  CauseScope(const CauseScope&) = delete;
  CauseScope& operator=(const CauseScope&) = delete;

 private:
  const char* before_;
};

// Bit i: the call writes to argument i.
uint64_t writtenBy(const Operator& op, std::span<const IValue> args) {
  uint64_t written = op.writtenArguments();
  const auto condition = op.writeCondition();
  if (!condition ||
      (*condition < args.size() && args[*condition].isBool() && args[*condition].toBool())) {
    written |= op.unannotatedArguments();
  }
  if (args.size() < 64) written &= (uint64_t{1} << args.size()) - 1;
  for (uint64_t rest = written; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    if (args[static_cast<size_t>(i)].isNone()) written &= ~(uint64_t{1} << i);
  }
  return written;
}

void callImmediately(CallFrame& frame) {
  const CauseScope scope(*frame.op);
  runImmediately(frame, writtenBy(*frame.op, std::span(frame.args, frame.num_args)));
}

// ---- recorded ----

// Ints that are sizes and positions, which change from step to step.
bool isPosition(const std::string& name) {
  static constexpr std::string_view kNames[] = {
      "size",       "sizes",       "shape",                                 // of results
      "input_size", "input_sizes", "self_size", "other_size", "base_size",  // of gradients
      "start",      "end",         "index",     "length",
  };
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// Whether a call with this argument can be a record.
bool isRecordable(const IValue& v) {
  switch (v.tag()) {
    case IValue::Tag::None:
    case IValue::Tag::Int:
    case IValue::Tag::Double:
    case IValue::Tag::Bool:
    case IValue::Tag::Complex:
    case IValue::Tag::String:
    case IValue::Tag::Tensor:
      return true;
    case IValue::Tag::Device:
      return v.toDevice().type == kLazy;
    case IValue::Tag::List:
      return std::ranges::all_of(v.elements(), isRecordable);
    default:
      return false;
  }
}

// A tensor beside lazy ones: one of no dimensions on the CPU, where a number would do as well, or
// one of positions.
void checkPlace(const Operator& op, const Tensor& t, bool in_list) {
  if (isLazy(t)) return;
  const bool joins = t.device().isCpu() && t.kind() == TensorKind::Dense &&
                     (t.dim() == 0 || (in_list && op.schema().name().starts_with("aten::index")) ||
                      op.has(kAnyKind));
  WICK_CHECK(joins,
             "Expected all tensors to be on the same device, but found at least two devices, lazy "
             "and {}!",
             t.device().str());
}

ValueId valueOf(const Tensor& t) {
  return isLazy(t) ? Base::of(t).read(t) : Graph::current()->input(onDeviceBelow(t.clone()));
}

Operand operandFor(const Operator& op, size_t i, const IValue& v) {
  Operand made;
  if (v.isTensor()) {
    made.kind = Operand::Kind::Value;
    made.values.push_back(valueOf(boxing::CallTensor(v)));
    return made;
  }
  if (v.isList()) {
    if (isTensorList(v)) {
      made.kind = Operand::Kind::Values;
      for (const IValue& e : v.elements()) {
        made.values.push_back(e.isTensor() ? valueOf(e.toTensor()) : kNoValue);
      }
      return made;
    }
    // The program may change its list.
    made.value = IValue(makeList(v.toList().element_type, v.elements()));
    const bool ints = !v.elements().empty() &&
                      std::ranges::all_of(v.elements(), [](const IValue& e) { return e.isInt(); });
    if (ints && isPosition(op.schema().arguments()[i].name)) made.kind = Operand::Kind::Ints;
    return made;
  }
  // In a graph all is on the device below.
  if (v.isDevice()) return deviceOperand();
  if (v.isInt() || v.isDouble()) {
    const Argument& declared = op.schema().arguments()[i];
    const auto* optional = declared.type->as<OptionalType>();
    const TypeKind kind = (optional ? optional->element() : declared.type)->kind();
    const bool arithmetic = kind == TypeKind::Number || kind == TypeKind::Float;
    if (arithmetic && op.record().scalar) return numberOperand(v);
    if (kind == TypeKind::Int && isPosition(declared.name)) return numberOperand(v);
  }
  return constantOperand(v);
}

class Recorder {
 public:
  explicit Recorder(CallFrame& frame) : frame_(frame) {}

  void run() {
    const Operator& op = *frame_.op;
    const std::span<const IValue> args(frame_.args, frame_.num_args);
    tensors_.reserve(args.size());
    for (const IValue& v : args) {
      if (!isRecordable(v)) return callImmediately(frame_);
      if (v.isTensor()) {
        tensors_.push_back(v.toTensor());
        checkPlace(op, tensors_.back(), false);
      } else if (v.isList()) {
        for (const IValue& e : v.elements()) {
          if (!e.isTensor()) continue;
          checkPlace(op, e.toTensor(), true);
          tensors_.push_back(e.toTensor());
        }
      }
    }
    prepareAll(args);
    if (op.form() == Operator::Form::Base) return recordBase(args);
    recordDerived(args);
  }

 private:
  // Values stay valid from here on to the record's end.
  void prepareAll(std::span<const IValue> args) {
    const uint64_t written = writtenBy(*frame_.op, args);
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].isTensor()) {
        prepare(boxing::CallTensor(args[i]), i < 64 && (written >> i & 1) != 0);
      } else if (args[i].isList()) {
        for (const IValue& e : args[i].elements()) {
          if (e.isTensor()) prepare(e.toTensor(), false);
        }
      }
    }
  }
  static void prepare(const Tensor& t, bool writes) {
    if (!isLazy(t)) return;
    Base::of(t).prepare(t, false);
    if (writes) Base::of(t).prepare(t, true);
  }

  // `count`: its values. The first one.
  ValueId add(const Operator& op, std::span<const IValue> args, const DimVector& results,
              uint64_t written, uint32_t count) {
    Graph& graph = *Graph::current();
    if (graph.isFollowing()) {
      values_.clear();
      for (const IValue& v : args) {
        if (v.isTensor()) {
          values_.push_back(valueOf(boxing::CallTensor(v)));
        } else if (v.isList() && isTensorList(v)) {
          for (const IValue& e : v.elements()) {
            values_.push_back(e.isTensor() ? valueOf(e.toTensor()) : kNoValue);
          }
        }
      }
      return graph.follow(op, args, values_, written, results);
    }
    Record record;
    record.op = &op;
    record.place = placeOfCall();
    record.operands.reserve(args.size());
    for (size_t i = 0; i < args.size(); ++i) record.operands.push_back(operandFor(op, i, args[i]));
    record.results = results;
    record.cloned = written;
    return graph.append(std::move(record), count);
  }

  void recordBase(std::span<const IValue> args) {
    const Operator& op = *frame_.op;
    const uint64_t written = writtenBy(op, args);
    std::vector<std::pair<size_t, Tensor>> destinations;
    for (size_t i = 0; i < args.size() && i < 64; ++i) {
      if ((written >> i & 1) == 0) continue;
      // Two that are the same memory would see each other's writes.
      const bool plain = args[i].isTensor() && isLazy(args[i].toTensor()) &&
                         !Geometry::of(args[i].toTensor()).mayOverlap() &&
                         std::ranges::count_if(tensors_, [&](const Tensor& t) {
                           return t.sharesStorage(args[i].toTensor());
                         }) == 1;
      if (!plain) return callImmediately(frame_);
      destinations.emplace_back(i, args[i].toTensor());
    }
    const std::shared_ptr<const Inferred> found = infer(op, args);
    const Inferred& inferred = *found;
    if (!inferred.known || inferred.counts.size() != frame_.num_results) {
      return callImmediately(frame_);
    }
    const bool dense = std::ranges::all_of(inferred.results, [](const Inferred::Result& r) {
      return r.argument >= 0 || r.geometry.isDense();
    });
    const bool views_written =
        written != 0 && std::ranges::any_of(inferred.results, [](const Inferred::Result& r) {
          return r.argument >= 0 && !r.same;
        });
    if (!dense || views_written) return callImmediately(frame_);
    const bool all_same =
        written == 0 && std::ranges::all_of(inferred.results, [](const auto& r) { return r.same; });
    if (all_same) return giveResults(inferred, kNoValue);
    const auto count = static_cast<uint32_t>(inferred.results.size());
    const ValueId first =
        add(op, args, inferred.counts, written, count + static_cast<uint32_t>(destinations.size()));
    giveResults(inferred, inferred.made_contiguous ? contiguous(first, count) : first);
    for (size_t d = 0; d < destinations.size(); ++d) {
      const Tensor& to = destinations[d].second;
      Base::of(to).write(to, first + count + static_cast<ValueId>(d), Geometry::of(to).ofCopy());
    }
  }

  // The same values row-major, one behind the other.
  static ValueId contiguous(ValueId first, uint32_t count) {
    static const Operator& op = operatorNamed("aten::contiguous", "");
    ValueId made = first;
    for (uint32_t i = 0; i < count; ++i) {
      const ValueId next = Graph::current()->emit(
          op, {valueOperand(first + i), constantOperand(IValue(int64_t{0}))});
      if (i == 0) made = next;
    }
    return made;
  }

  void giveResults(const Inferred& inferred, ValueId first) {
    const DimVector& counts = inferred.counts;
    const std::vector<Inferred::Result>& found = inferred.results;
    size_t next = 0;
    const auto make = [&] {
      const size_t at = next++;
      return resultFor(found[at], first == kNoValue ? kNoValue : first + static_cast<ValueId>(at));
    };
    for (size_t r = 0; r < counts.size(); ++r) {
      if (counts[r] == Record::kOne) {
        frame_.results[r] = IValue(make());
        continue;
      }
      std::vector<Tensor> parts;
      for (int64_t k = 0; k < counts[r]; ++k) parts.push_back(make());
      frame_.results[r] = IValue(makeTensorList(parts));
    }
  }

  Tensor resultFor(const Inferred::Result& result, ValueId value) {
    if (result.argument >= 0) {
      const Tensor& argument = tensors_[static_cast<size_t>(result.argument)];
      if (result.same) return argument;
      if (isLazy(argument)) {
        Geometry view = result.geometry;
        view.offset += argument.offset();
        const Tensor made = Tensor::fromStorage(argument.storage(), view.dtype, view.sizes,
                                                view.strides, view.offset);
        Base::of(argument).remember(view, value);
        return made;
      }
    }
    Geometry layout = result.geometry;
    layout.offset = 0;
    const Tensor made = makeLazy(layout);
    Base::of(made).write(made, value, layout);
    return made;
  }

  // Whether an argument lies where the destination does and is not the same tensor: some operators
  // refuse that. They compare all strides, also those of dimensions of one element.
  bool readsPartOf(const Tensor& destination) const {
    const Geometry written = Geometry::of(destination);
    return std::ranges::any_of(tensors_, [&](const Tensor& t) {
      if (!t.sharesStorage(destination)) return false;
      const Geometry read = Geometry::of(t);
      const bool same = read == written && read.strides == written.strides;
      return !same && read.offset < written.end() && written.offset < read.end();
    });
  }

  // What the record's form without the write computes is written.
  void recordDerived(std::span<const IValue> args) {
    const Operator& op = *frame_.op;
    const Operator& base = baseOf(op);
    const bool out = op.form() == Operator::Form::Out;
    IValue kept = args[out ? args.size() - 1 : 0];
    const Tensor destination = kept.isTensor() ? kept.toTensor() : Tensor();
    WICK_CHECK(destination.defined(), "{}: expected a tensor to write to, got None",
               op.schema().name());
    const std::span<const IValue> taken = args.first(args.size() - (out ? 1 : 0));
    if (!isLazy(destination) || Geometry::of(destination).mayOverlap() ||
        writtenBy(base, taken) != 0 || readsPartOf(destination)) {
      return callImmediately(frame_);
    }
    const std::shared_ptr<const Inferred> found = infer(base, taken);
    const Inferred& inferred = *found;
    const bool one = inferred.known && inferred.counts.size() == 1 &&
                     inferred.counts[0] == Record::kOne && inferred.results.size() == 1;
    if (!one) return callImmediately(frame_);
    const Inferred::Result& result = inferred.results[0];
    const Geometry& computed = result.geometry;
    const bool fits = computed.sizes == DimVector(destination.sizes());
    // The operator says what is wrong.
    if ((!fits && !out) || !canCast(computed.dtype, destination.dtype())) {
      return callImmediately(frame_);
    }
    const bool shared = std::ranges::any_of(tensors_, [&](const Tensor& t) {
      return !t.isSame(destination) && t.sharesStorage(destination);
    });
    const bool reads_itself =
        std::ranges::count_if(tensors_, [&](const Tensor& t) { return t.isSame(destination); }) > 1;
    if (!fits && (shared || reads_itself)) return callImmediately(frame_);
    if (!fits) {
      destination.resize(computed.sizes);
      // It is written as a whole, or else what it shares memory with must be there.
      if (Base::of(destination).isPending()) {
        Graph::current()->evaluate("a result that is larger than its memory");
        prepareAll(taken);
      }
    }
    Geometry of_value = computed;
    ValueId value = kNoValue;
    if (result.same) {
      const Tensor& argument = tensors_[static_cast<size_t>(result.argument)];
      value = valueOf(argument);
    } else {
      value = add(base, taken, inferred.counts, 0, 1);
      if (inferred.made_contiguous) value = contiguous(value, 1);
    }
    if (computed.dtype != destination.dtype()) {
      value = converted(value, destination.dtype());
      of_value = computed.ofCopy();
      of_value.dtype = destination.dtype();
    }
    Base::of(destination).write(destination, value, of_value);
    frame_.results[0] = std::move(kept);
  }

  CallFrame& frame_;
  std::vector<Tensor> tensors_;  // of the arguments, in lists too
  std::vector<ValueId> values_;

 public:
  static ValueId converted(ValueId value, DType dtype) {
    static const Operator& to = operatorNamed("aten::to", "dtype");
    const Operand no = constantOperand(IValue(false));
    return Graph::current()->emit(
        to, {valueOperand(value), constantOperand(IValue(static_cast<int64_t>(dtype))), no, no,
             constantOperand(IValue())});
  }
};

// ---- direct, and views ----

void callDirectly(CallFrame& frame) {
  const Operator& op = *frame.op;
  const CauseScope scope(op);
  const Kernel own = findDeviceKernel(op, kLazy);
  const Kernel kernel = own ? own : op.record().kernel;
  if (op.form() == Operator::Form::Base) return kernel(frame);
  const bool out = op.form() == Operator::Form::Out;
  const Tensor destination = frame.args[out ? frame.num_args - 1 : 0].toTensor();
  WICK_CHECK(destination.defined(), "{}: expected a tensor to write to, got None",
             op.schema().name());
  CallFrame base = frame;
  if (out) --base.num_args;
  base.destination = &destination;
  kernel(base);
  finishDerived(op, destination, frame.results[0]);
}

void callView(CallFrame& frame) {
  const Operator& op = *frame.op;
  const std::vector<IValue> args(frame.args, frame.args + frame.num_args);
  callDirectly(frame);
  const std::lock_guard lock(mutex());
  if (!std::ranges::all_of(args, isRecordable)) return;
  // Of data views are data; only what is computed has to be told how.
  std::optional<Tensor> source;
  for (const IValue& v : args) {
    if (v.isTensor() && isLazy(v.toTensor()) && !source) source = v.toTensor();
  }
  if (!source || !Base::of(*source).isPending()) return;
  for (const IValue& v : args) {
    if (v.isTensor() && isLazy(v.toTensor())) Base::of(v.toTensor()).prepare(v.toTensor(), false);
  }
  if (!Base::of(*source).isPending()) return;
  std::vector<Tensor> made;
  DimVector counts;
  for (size_t r = 0; r < frame.num_results; ++r) {
    const IValue& result = frame.results[r];
    if (result.isTensor()) {
      counts.push_back(Record::kOne);
      made.push_back(result.toTensor());
    } else if (isTensorList(result)) {
      counts.push_back(static_cast<int64_t>(result.elements().size()));
      for (const IValue& e : result.elements()) made.push_back(e.toTensor());
    } else {
      return;
    }
  }
  const bool views = std::ranges::all_of(
      made, [&](const Tensor& t) { return t.defined() && t.sharesStorage(*source); });
  const bool changes = std::ranges::any_of(
      made, [&](const Tensor& t) { return !(Geometry::of(t) == Geometry::of(*source)); });
  if (!views || !changes) return;
  Record record;
  record.op = &op;
  record.place = placeOfCall();
  record.results = counts;
  for (size_t i = 0; i < args.size(); ++i) record.operands.push_back(operandFor(op, i, args[i]));
  const ValueId first =
      Graph::current()->append(std::move(record), static_cast<uint32_t>(made.size()));
  for (size_t i = 0; i < made.size(); ++i) {
    Base::of(*source).remember(Geometry::of(made[i]), first + static_cast<ValueId>(i));
  }
}

}  // namespace

const char* currentCause() {
  return cause ? cause : "copy";
}

bool inUse() {
  return in_use.load(std::memory_order_relaxed);
}

Tensor makeLazy(const Geometry& layout) {
  const Device device{kLazy, -1};
  if (layout.strides == contiguousStrides(layout.sizes)) {
    return Tensor::empty(layout.sizes, layout.dtype, device);  // which looks at less
  }
  return Tensor::emptyStrided(layout.sizes, layout.strides, layout.dtype, device);
}

void recordCall(CallFrame& frame) {
  std::unique_lock lock(mutex());
  if (isFull(*Graph::current())) Graph::current()->evaluate("a long graph");
  const Way way = wayOf(*frame.op, std::span(frame.args, frame.num_args));
  if (way == Way::Direct || way == Way::View) {
    // These may call anything, back into Python too.
    lock.unlock();
    return way == Way::Direct ? callDirectly(frame) : callView(frame);
  }
  if (way == Way::Immediate) return callImmediately(frame);
  Recorder(frame).run();
}

// ---- the device ----

namespace {

IValue numberOf(const Tensor& element) {
  if (element.dtype() == DType::Bool) return IValue(element.item<bool>());
  if (isComplex(element.dtype())) return IValue(element.item<std::complex<double>>());
  if (isIntegral(element.dtype(), false)) return IValue(element.item<int64_t>());
  return IValue(element.item<double>());
}

// One number for all elements.
void fill(const Tensor& to, const Tensor& element) {
  static const Operator& full = operatorNamed("aten::full", "");
  Geometry layout = Geometry::of(to);
  layout.offset = 0;
  layout.strides = contiguousStrides(to.sizes());
  Base::of(to).prepare(to, true);
  const Operand none = constantOperand(IValue());
  const IValue number = numberOf(element);
  const ValueId value = Graph::current()->emit(
      full,
      {intsOperand(to.sizes()),
       number.isInt() || number.isDouble() ? numberOperand(number) : constantOperand(number),
       constantOperand(IValue(static_cast<int64_t>(to.dtype()))), none, deviceOperand(), none});
  Base::of(to).write(to, value, layout);
}

class LazyBackend : public DeviceBackend {
 public:
  int count() override { return 1; }
  Device current() override { return {kLazy, -1}; }
  bool hasMemory() const override { return false; }
  void* allocate(Device, size_t) override {
    if (!in_use.exchange(true, std::memory_order_relaxed)) noteCallPlaces();
    return nullptr;
  }
  void free(Device, void*, size_t) noexcept override {}
  void clear(Device, void*, size_t) override {}
  void copyBytes(void*, Device, const void*, Device, size_t) override {}
  void copyElements(const Tensor& to, const Tensor& from) override { copyTensor(to, from); }
  void copyTensor(const Tensor& to, const Tensor& from) override;
  void synchronize(Device) override { Graph::current()->evaluate("synchronize"); }
};

void LazyBackend::copyTensor(const Tensor& to, const Tensor& from) {
  const std::lock_guard lock(mutex());
  if (!isLazy(to)) {
    const Tensor data = Base::of(from).fetch(from, currentCause());
    to.copyFrom(data);
    return;
  }
  if (isLazy(from)) {
    Base::of(from).prepare(from, false);
    Base::of(to).prepare(to, true);
    if (Base::of(from).isPending()) Base::of(from).prepare(from, false);
    ValueId value = Base::of(from).read(from);
    Geometry is = Geometry::of(from);
    is.offset = 0;
    if (is.dtype != to.dtype()) {
      value = Recorder::converted(value, to.dtype());
      is = is.ofCopy();
      is.dtype = to.dtype();
    }
    Base::of(to).write(to, value, is);
    return;
  }
  const bool one = from.device().isCpu() &&
                   std::ranges::all_of(from.strides(), [](int64_t s) { return s == 0; });
  if (one && to.numel() > 1) {
    const Tensor element = Tensor::empty({}, to.dtype());
    element.copyFrom(from.asStrided({}, {}, from.offset()));
    return fill(to, element);
  }
  Geometry layout = Geometry::of(to);
  layout.offset = 0;
  const Tensor data =
      layout.isDense() ? Tensor::emptyStrided(to.sizes(), to.strides(), to.dtype(), deviceBelow())
                       : Tensor::empty(to.sizes(), to.dtype(), deviceBelow());
  data.copyFrom(from);
  Base::of(to).writeData(to, data);
}

const struct Registration {
  LazyBackend backend;
  Registration() {
    setDeviceBackend(kLazy, &backend);
    setDeviceRecorder(kLazy, recordCall);
  }
}& registration = *new Registration;

}  // namespace

}  // namespace wick::lazy
