// Operators: the builtins that a Node can name and the interpreter can call.
//
// One record an operator. A record states everything that any part of the engine asks of the
// operator: its schema (types, defaults, aliasing), its kernel, how shapes and dtypes follow from
// the inputs, its scalar definition when it is pointwise, and its effects. In-place
// (`name_`) and `out=` forms are derived from the record by flags. Rooms above register tables of
// records; schemas are parsed when an operator's name is first looked up, so that start-up costs
// nothing.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/function_schema.h"
#include "core/grad_mode.h"
#include "core/ivalue.h"
#include "core/symbol.h"
#include "core/tensor_kind.h"
#include "core/thread_context.h"
#include "ir/output_rules.h"

namespace wick {

class Node;
class Operator;
struct ScalarDefinition;  // codegen/scalar: the arithmetic of a pointwise operator, for every
                          // engine

// One call of a kernel. It must store exactly the schema's number of results (operators with `...`
// returns: one value an expected output). Arguments live until the kernel returns; it may move out
// of those that it owns, and only through take().
struct CallFrame {
  IValue* args;
  size_t num_args;
  IValue* results;
  size_t num_results;
  const Operator* op;
  // Bit i: argument i holds no reference of its own, somebody else keeps the object for the call.
  // So many threads may call with one object and never write to its count.
  uint64_t borrowed = 0;
  // Where an in-place or out= form wants its result. A kernel that can write there directly does
  // and returns it; for the others the caller copies.
  const Tensor* destination = nullptr;

  bool owns(size_t i) const { return i >= 64 || (borrowed >> i & 1) == 0; }
  // The argument, moved out where that may be.
  IValue take(size_t i) { return owns(i) ? std::move(args[i]) : IValue(args[i]); }
};
using Kernel = void (*)(CallFrame& frame);

// The types of a node's outputs as far as they follow from its inputs' types and constants. May
// refine less than possible, never wrongly.
using ShapeRule = std::vector<TypePtr> (*)(const Node& node);

enum OperatorFlags : uint64_t {
  kNoFlags = 0,
  kInplaceForm = 1 << 0,  // also registers name_(Tensor(a!) self, …) -> Tensor(a!)
  kOutForm = 1 << 1,      // also registers name.overload_out(…, *, Tensor(a!) out) -> Tensor(a!)
  kNondeterministic = 1 << 2,   // draws random numbers or makes leaves: neither merged nor folded
  kSideEffects = 1 << 3,        // prints, raises, waits: never removed or reordered
  kNotDifferentiable = 1 << 4,  // integer or boolean results, or a constant: no gradient flows
  kAnyKind = 1 << 5,  // reads nothing but what tensors of every kind have (core/tensor_kind.h)
  kMayReturnArgument = 1 << 6,  // a result may be (a view of) an argument although the schema, as
                                // PyTorch writes it, does not say so
  kChangesMetadata = 1 << 7,    // what it writes gets other sizes, strides, memory or history too
  kRefusesPartialOverlap = 1 << 8,  // raises when an argument shares a part of the memory it writes
  kRefusesOverlap = 1 << 9,         // raises when an argument other than self shares any of it
  kChangesHistory = 1 << 10,        // writes no element, but where the tensor comes from
  // Which dtypes the tensors of out= arguments may have (OutputRule); without any of these, all that
  // the result can be cast to. PyTorch decides so by operator.
  kOutReal = 1 << 11,
  kOutSame = 1 << 12,
  kOutAny = 1 << 13,
  kOutBoolean = 1 << 14,
  // The kernel works with tensors of any device, because it looks at no element itself: it asks
  // other operators, tensors' own functions, and what runtime/kernels/device_layers.h computes.
  // Views and what works on every kind of tensor need not say so.
  kNeutral = 1 << 15,       // all tensors of a call must be on one device
  kNeutralMixed = 1 << 16,  // they may be on several
  kNeutralLast = 1 << 17,   // on one, and only where the device's general kernel, which is faster,
                            // cannot do the call
  kRaisesByElements =
      1 << 18,  // raises for some elements: indices out of range, singular matrices,
                // integers divided by zero
  // How scripts within torch.autocast treat the tensors of a call (CastPolicy), after PyTorch's lists for CUDA.
  kCastReduced = 1 << 19,
  kCastFull = 1 << 20,
  kCastFullUnlessTold = 1 << 21,  // the call may say which dtype it wants
  kCastFullOnCuda = 1 << 22,      // the same, on CUDA alone
  kCastWidest = 1 << 23,
  kCastUnsafe = 1 << 24,  // raises
  // How eager calls of PyTorch 1.13 within torch.autocast on the CPU do (TorchRule). Operators that PyTorch composes of others
  // have the rule that comes of these.
  kEagerCastReduced = 1 << 25,
  kEagerCastFull = 1 << 26,
  kEagerCastWidest = 1 << 27,
  kEagerCastFullWithin = 1 << 28,  // is composed of operators that cast to float32, and of others
  kEagerCastUnknown =
      1 << 29,  // is composed of operators that cast in a way that depends on arguments
  kEagerCastInner = 1 << 30,              // is a product, unless a tensor has no dimension
  kEagerCastPadding = uint64_t{1} << 31,  // depends on the mode of padding
  // How the layout of the first operand shows in the results.
  kRowMajor = uint64_t{1} << 33,       // not at all: they are row-major
  kKeepsOrder = uint64_t{1} << 34,     // they may lie in memory as it does
  kReadsStrides = uint64_t{1} << 35,   // as numbers, or in an error
  kMayCopy = uint64_t{1} << 36,        // they are views, unless it lies otherwise
  kMovesElements = uint64_t{1} << 37,  // they are views in another order of dimensions or of a part
  kSavesNothing = uint64_t{1} << 32,   // keeps no tensor for its backward pass in PyTorch 1.13
};
// Operators with both derived forms.
inline constexpr uint64_t kBothForms = kInplaceForm | kOutForm;

struct OperatorRecord {
  const char* schema;
  Kernel kernel;
  uint64_t flags = kNoFlags;
  ShapeRule shape = nullptr;                 // null: nothing is known beyond the schema's types
  const ScalarDefinition* scalar = nullptr;  // not null: pointwise, may join a fusion group
  // Tensor arguments that a call writes although the schema, which is PyTorch's, does not say so:
  // names, then perhaps `if` and the argument that must be true for it: "mean var if training".
  const char* writes = nullptr;
};

// Another name for all overloads of an operator: {"aten::absolute", "aten::abs"}.
struct OperatorAlias {
  const char* alias;
  const char* name;
};

// A registered operator with its parsed schema. Lives as long as the process.
class Operator {
 public:
  enum class Form : uint8_t { Base, Inplace, Out };
  Operator(FunctionSchema schema, Symbol symbol, const OperatorRecord& record, Form form);

  const FunctionSchema& schema() const { return schema_; }
  Symbol symbol() const { return symbol_; }
  const OperatorRecord& record() const { return record_; }
  Form form() const { return form_; }
  // Of the tensors of its out= arguments.
  OutputRule outputRule() const { return output_rule_; }
  bool has(OperatorFlags flag) const { return (record_.flags & flag) != 0; }
  // Bit i: a call writes to argument i, or to what it contains.
  uint64_t writtenArguments() const { return written_; }

  // Bit i: a call as the node makes it may write argument i, or the tensors in the list that it is:
  // what the schema annotates and what the record's `writes` names. An argument that is None, or
  // that is written only if a constant were true that is false, does not count. The one place that
  // knows; the schema alone does not tell.
  uint64_t writtenArguments(const Node& node) const { return written_ | unannotatedWrites(node); }
  // The part of it that the schema does not tell.
  uint64_t unannotatedWrites(const Node& node) const {
    return unannotated_ == 0 ? 0 : unannotatedInCall(node);
  }
  bool mayWrite(const Node& node) const {
    return schema_.isMutable() || unannotatedWrites(node) != 0;
  }
  // What the record's `writes` names, whatever the call, and the argument that must be true for it;
  // nullopt when it always happens.
  uint64_t unannotatedArguments() const { return unannotated_; }
  std::optional<size_t> writeCondition() const { return write_condition_; }

  // Calls the operator: for derived forms the result lands in self or out. `borrowed` as in
  // CallFrame. Goes through the thread's layers, if there are any; a call that gradients are wanted
  // of then goes by the recorder, all others straight to the kernel.
  void call(IValue* args, size_t num_args, IValue* results, size_t num_results,
            uint64_t borrowed = 0) const {
    if (threadContext().active_layers != 0) [[unlikely]] {
      callThroughLayers(args, num_args, results, num_results, borrowed);
    } else {
      callBelowLayers(args, num_args, results, num_results, borrowed);
    }
  }
  // What call() does below the layers of the thread (ir/call_layer.h).
  void callBelowLayers(IValue* args, size_t num_args, IValue* results, size_t num_results,
                       uint64_t borrowed) const {
    if ((makes_views_ ? notesViews() : gradientsInUse()) && concernsGradients(args, num_args))
        [[unlikely]] {
      record(args, num_args, results, num_results, borrowed);
    } else {
      callKernel(args, num_args, results, num_results, borrowed);
    }
  }
  // What call() does below the recorder.
  void callKernel(IValue* args, size_t num_args, IValue* results, size_t num_results,
                  uint64_t borrowed = 0) const;

  // Bit i: argument i is a tensor, which may be None, or a list of such.
  uint64_t tensorArguments() const { return tensors_; }
  // Whether results may be views of arguments, as the schema says.
  bool makesViews() const { return makes_views_; }

  // Runs calls of operators whose tensors require gradients (autograd/recorder.h); set once, before
  // main(). It has the arguments of call().
  using Recorder = void (*)(const Operator& op, IValue* args, size_t num_args, IValue* results,
                            size_t num_results, uint64_t borrowed);
  static void setRecorder(Recorder recorder);
  // What the recorder keeps of the operator; null at first. Never freed. Thread-safe.
  std::atomic<const void*>& recorderState() const { return recorder_state_; }

 private:
  // Whether a tensor argument requires a gradient or has a history; also when a view is made,
  // because it may be written to later. Without gradients, whether a program makes a view.
  bool concernsGradients(const IValue* args, size_t num_args) const {
    const ThreadContext& context = threadContext();
    if (!context.grad_enabled) return makes_views_ && !context.below_recorder;
    if (makes_views_) return true;
    for (uint64_t rest = tensors_; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(rest));
      if (i < num_args && hasHistory(args[i])) return true;
    }
    return false;
  }
  static bool hasHistory(const IValue& v) {
    if (v.isTensor()) {
      const auto& tensor = *static_cast<const TensorImpl*>(v.rawObject());
      return tensor.requires_grad || tensor.history;
    }
    return v.isList() && listHasHistory(v);
  }
  static bool listHasHistory(const IValue& list);
  void callThroughLayers(IValue* args, size_t num_args, IValue* results, size_t num_results,
                         uint64_t borrowed) const;
  void record(IValue* args, size_t num_args, IValue* results, size_t num_results,
              uint64_t borrowed) const;
  // For tensors that are not dense; in kind_kernels.cpp.
  void findKernelsOfKinds();
  TensorKind kindOfArguments(const IValue* args, size_t num_args) const;
  void callForKind(TensorKind kind, IValue* args, size_t num_args, IValue* results,
                   size_t num_results, uint64_t borrowed) const;
  void callDerived(IValue* args, size_t num_args, IValue* results, size_t num_results,
                   uint64_t borrowed) const;
  void bumpWritten(const IValue* args, size_t num_args) const;
  void checkOverlap(const IValue* args, size_t num_args) const;
  void readUnannotatedWrites();
  uint64_t unannotatedInCall(const Node& node) const;
  FunctionSchema schema_;
  Symbol symbol_;
  const OperatorRecord& record_;
  Form form_;
  OutputRule output_rule_ = OutputRule::Castable;
  // Bit i: argument i is a tensor or a list of them that the call writes to; as the schema says,
  // and as the record says beyond it (if at all, and if the condition holds).
  uint64_t written_ = 0;
  uint64_t unannotated_ = 0;
  std::optional<size_t> write_condition_;
  uint64_t tensors_ = 0;
  bool makes_views_ = false;
  // Of this name, and of the record's name; null when there are none.
  const std::array<Kernel, kNumTensorKinds>* own_kernels_ = nullptr;
  const std::array<Kernel, kNumTensorKinds>* base_kernels_ = nullptr;
  mutable std::atomic<const void*> recorder_state_{nullptr};
};

// Thread-safe.
class OperatorRegistry {
 public:
  static OperatorRegistry& instance();

  // `records` and `aliases` must live as long as the process. Tables added later come last in
  // overload resolution.
  void add(std::span<const OperatorRecord> records, std::span<const OperatorAlias> aliases = {});
  // All overloads of a name in the order in which they are tried; empty when there is none.
  const std::vector<const Operator*>& overloads(Symbol name);
  // The overload with this name ("" is one), or null.
  const Operator* find(Symbol name, std::string_view overload);
  // Every registered name, sorted. Parses nothing.
  std::vector<std::string> names();

 private:
  OperatorRegistry();
  struct State;
  std::unique_ptr<State> state_;
};

// A static object that adds its tables when the program starts:
//   const RegisterOperators registered(kRecords);
struct RegisterOperators {
  explicit RegisterOperators(std::span<const OperatorRecord> records,
                             std::span<const OperatorAlias> aliases = {}) {
    OperatorRegistry::instance().add(records, aliases);
  }
};

}  // namespace wick
