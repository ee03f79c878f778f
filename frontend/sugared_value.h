// SugaredValues: what names and attribute chains stand for while a function is being compiled.
//
// Some are first-class (SimpleValue wraps a Value*); others exist only during emission: `torch`, a
// module, a class, a builtin function, `range(…)`. The emitter asks them to desugar themselves:
// attr() for `x.f`, call() for `x(…)`, and so on. Every default refuses with a CompileError that
// names the kind.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/source_range.h"
#include "ir/function.h"
#include "ir/graph.h"

namespace wick {

class SugaredValue;
using SugaredValuePtr = std::shared_ptr<SugaredValue>;

// An argument on its way into a call: a Value with the place it came from and, for keywords, a
// name.
struct NamedValue {
  NamedValue(const SourceRange& range, Value* value) : range(range), value(value) {}
  NamedValue(const SourceRange& range, std::string name, Value* value)
      : range(range), name(std::move(name)), value(value) {}
  SourceRange range;
  std::optional<std::string> name;
  Value* value;
  const TypePtr& type() const { return value->type(); }
};

// `fn` is the function that is being compiled; code is inserted at fn.graph()'s insertion point.
class SugaredValue : public std::enable_shared_from_this<SugaredValue> {
 public:
  virtual ~SugaredValue() = default;
  // What it is, for messages: "builtin function", "module".
  virtual std::string kind() const = 0;

  // As a first-class value.
  virtual Value* asValue(const SourceRange& range, GraphFunction& fn);
  // x.field
  virtual SugaredValuePtr attr(const SourceRange& range, GraphFunction& fn,
                               const std::string& field);
  virtual bool hasAttr(const SourceRange& range, GraphFunction& fn, const std::string& field);
  // x.field = value
  virtual void setAttr(const SourceRange& range, GraphFunction& fn, const std::string& field,
                       Value* value);
  // x(args, kwargs). `num_binders` is how many targets the result is unpacked into (for chunk and
  // the like, whose number of results depends on it).
  virtual SugaredValuePtr call(const SourceRange& range, GraphFunction& fn,
                               std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                               size_t num_binders);
  // a, b = x. `size_hint`: how many are wanted, where the value itself cannot tell.
  virtual std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& fn,
                                               std::optional<size_t> size_hint = std::nullopt);
  // x[index]; `type_hint` is given for module containers indexed with a non-literal.
  virtual SugaredValuePtr getItem(const SourceRange& range, GraphFunction& fn, Value* index,
                                  TypePtr type_hint = nullptr);

  // Iteration. An iterable either is unrolled at compile time (staticElements) or gives a length
  // and an element by index.
  virtual SugaredValuePtr iterate(const SourceRange& range, GraphFunction& fn);
  virtual bool shouldUnroll() const { return false; }
  // Number of elements where it is known when compiling.
  virtual std::optional<size_t> staticLength() const { return std::nullopt; }
  virtual Value* length(const SourceRange& range, GraphFunction& fn);
};

class SimpleValue : public SugaredValue {
 public:
  explicit SimpleValue(Value* value) : value_(value) {}
  std::string kind() const override;
  Value* asValue(const SourceRange&, GraphFunction&) override { return value_; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string&) override;
  bool hasAttr(const SourceRange&, GraphFunction&, const std::string&) override;
  void setAttr(const SourceRange&, GraphFunction&, const std::string&, Value*) override;
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;
  std::vector<SugaredValuePtr> asTuple(const SourceRange&, GraphFunction&,
                                       std::optional<size_t>) override;
  SugaredValuePtr getItem(const SourceRange&, GraphFunction&, Value*, TypePtr) override;
  SugaredValuePtr iterate(const SourceRange&, GraphFunction&) override;
  Value* length(const SourceRange&, GraphFunction&) override;
  Value* value() const { return value_; }

 private:
  Value* value_;
};

// An operator by name ("aten::add"), with a bound first argument when it was reached as a method.
class BuiltinFunction : public SugaredValue {
 public:
  explicit BuiltinFunction(Symbol symbol, std::optional<NamedValue> self = std::nullopt)
      : symbol_(symbol), self_(std::move(self)) {}
  std::string kind() const override {
    return "builtin function '" + std::string(symbol_.name()) + "'";
  }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;
  Symbol symbol() const { return symbol_; }
  const std::optional<NamedValue>& self() const { return self_; }

 private:
  Symbol symbol_;
  std::optional<NamedValue> self_;
};

// `torch`, `torch.nn.functional`, `math`: a namespace whose members are found in the builtin table
// (frontend/builtin_table.h).
class BuiltinModule : public SugaredValue {
 public:
  explicit BuiltinModule(std::string name) : name_(std::move(name)) {}
  std::string kind() const override { return "module '" + name_ + "'"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string&) override;
  bool hasAttr(const SourceRange&, GraphFunction&, const std::string&) override;

 private:
  std::string name_;
};

// A script function; calling it emits prim::CallFunction.
class FunctionValue : public SugaredValue {
 public:
  explicit FunctionValue(Function* callee) : callees_{callee} {}
  // Overloads, tried in order.
  explicit FunctionValue(std::vector<Function*> callees) : callees_(std::move(callees)) {}
  std::string kind() const override { return "function"; }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;
  const std::vector<Function*>& callees() const { return callees_; }

 private:
  std::vector<Function*> callees_;
};

// obj.method: calling it emits prim::CallMethod.
class MethodValue : public SugaredValue {
 public:
  MethodValue(Value* self, std::vector<std::string> methods)
      : self_(self), methods_(std::move(methods)) {}
  std::string kind() const override { return "method"; }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;

 private:
  Value* self_;
  std::vector<std::string> methods_;
};

// A class by name: calling it constructs, its attributes are static methods.
class ClassValue : public SugaredValue {
 public:
  explicit ClassValue(ClassTypePtr type) : type_(std::move(type)) {}
  std::string kind() const override { return "class"; }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string&) override;
  const ClassTypePtr& type() const { return type_; }

 private:
  ClassTypePtr type_;
};

class NamedTupleConstructor : public SugaredValue {
 public:
  explicit NamedTupleConstructor(std::shared_ptr<const TupleType> type) : type_(std::move(type)) {}
  std::string kind() const override { return "NamedTuple constructor"; }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;

 private:
  std::shared_ptr<const TupleType> type_;
};

// An enum class: Color.RED, Color(1), iteration over members.
class EnumClassValue : public SugaredValue {
 public:
  explicit EnumClassValue(std::shared_ptr<const EnumType> type) : type_(std::move(type)) {}
  std::string kind() const override { return "enum class"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string&) override;
  SugaredValuePtr iterate(const SourceRange&, GraphFunction&) override;
  const std::shared_ptr<const EnumType>& type() const { return type_; }

 private:
  std::shared_ptr<const EnumType> type_;
};

// A tuple whose elements are sugared themselves (modules in a container, unrolled iterables).
class SugaredTuple : public SugaredValue {
 public:
  explicit SugaredTuple(std::vector<SugaredValuePtr> elements) : elements_(std::move(elements)) {}
  std::string kind() const override { return "tuple"; }
  Value* asValue(const SourceRange&, GraphFunction&) override;
  std::vector<SugaredValuePtr> asTuple(const SourceRange&, GraphFunction&,
                                       std::optional<size_t>) override {
    return elements_;
  }
  SugaredValuePtr getItem(const SourceRange&, GraphFunction&, Value*, TypePtr) override;
  SugaredValuePtr iterate(const SourceRange&, GraphFunction&) override {
    return shared_from_this();
  }
  bool shouldUnroll() const override { return true; }
  std::optional<size_t> staticLength() const override { return elements_.size(); }
  Value* length(const SourceRange&, GraphFunction&) override;

 private:
  std::vector<SugaredValuePtr> elements_;
};

// range(start, end, step).
class RangeValue : public SugaredValue {
 public:
  RangeValue(const SourceRange& range, GraphFunction& fn, std::vector<Value*> arguments,
             std::optional<size_t> static_length = std::nullopt);
  std::string kind() const override { return "range"; }
  SugaredValuePtr getItem(const SourceRange&, GraphFunction&, Value*, TypePtr) override;
  SugaredValuePtr iterate(const SourceRange&, GraphFunction&) override {
    return shared_from_this();
  }
  std::optional<size_t> staticLength() const override { return static_length_; }
  Value* length(const SourceRange&, GraphFunction&) override;
  // value in range(…), as a bool.
  Value* contains(const SourceRange& range, GraphFunction& fn, Value* value);

 private:
  Value* start_ = nullptr;
  Value* end_ = nullptr;
  Value* step_ = nullptr;
  bool has_only_end_ = false;
  std::optional<size_t> static_length_;
};

// zip(…) and enumerate(…): several iterables in step.
class IterableTree : public SugaredValue {
 public:
  explicit IterableTree(std::vector<SugaredValuePtr> children) : children_(std::move(children)) {}
  std::string kind() const override { return "iterabletree"; }
  SugaredValuePtr getItem(const SourceRange&, GraphFunction&, Value*, TypePtr) override;
  SugaredValuePtr iterate(const SourceRange&, GraphFunction&) override {
    return shared_from_this();
  }
  bool shouldUnroll() const override;
  std::optional<size_t> staticLength() const override;
  Value* length(const SourceRange&, GraphFunction&) override;
  std::vector<SugaredValuePtr> asTuple(const SourceRange&, GraphFunction&,
                                       std::optional<size_t>) override;

 private:
  std::vector<SugaredValuePtr> children_;
};

// A form that the emitter itself handles when it is applied: annotate, isinstance, getattr, zip,
// fork…
class SpecialForm : public SugaredValue {
 public:
  // `receiver` is what a method is taken from; null for functions.
  explicit SpecialForm(Symbol form, Value* receiver = nullptr) : form_(form), receiver_(receiver) {}
  std::string kind() const override;
  Symbol form() const { return form_; }
  Value* receiver() const { return receiver_; }
  // dict.fromkeys
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string&) override;

 private:
  Symbol form_;
  Value* receiver_;
};

// slice(start, stop, step), for use as a subscript. Missing bounds are null.
class SliceValue : public SugaredValue {
 public:
  SliceValue(Value* start, Value* stop, Value* step) : start(start), stop(stop), step(step) {}
  std::string kind() const override { return "slice"; }
  Value* const start;
  Value* const stop;
  Value* const step;
};

// A function with a flag that chooses between two functions and must be known when compiling:
// max_pool2d(..., return_indices=True).
class FlagDispatch : public SugaredValue {
 public:
  FlagDispatch(std::string flag, size_t position, SugaredValuePtr if_true, SugaredValuePtr if_false)
      : flag_(std::move(flag)),
        position_(position),
        if_true_(std::move(if_true)),
        if_false_(std::move(if_false)) {}
  std::string kind() const override { return "function"; }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;

 private:
  std::string flag_;
  size_t position_;
  SugaredValuePtr if_true_;
  SugaredValuePtr if_false_;
};

// A function without arguments whose result is known when compiling: torch.jit.is_tracing().
class ConstantFunction : public SugaredValue {
 public:
  explicit ConstantFunction(IValue value) : value_(std::move(value)) {}
  std::string kind() const override { return "builtin function"; }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;

 private:
  IValue value_;
};

// torch.FloatTensor: constructs from sizes or from a list of numbers.
class TypedTensorConstructor : public SugaredValue {
 public:
  explicit TypedTensorConstructor(int64_t dtype) : dtype_(dtype) {}
  std::string kind() const override { return "tensor constructor"; }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;

 private:
  int64_t dtype_;
};

// An exception class, or (once called) an exception with its message: what `raise` takes.
class ExceptionValue : public SugaredValue {
 public:
  explicit ExceptionValue(std::string class_name, Value* message = nullptr)
      : class_name_(std::move(class_name)), message_(message) {}
  std::string kind() const override { return "exception"; }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;
  const std::string& className() const { return class_name_; }
  // A str, or null without a message.
  Value* message() const { return message_; }

 private:
  std::string class_name_;
  Value* message_;
};

// int(x), float(x), bool(x), str(x)…: a cast when the argument has that type already.
class CastValue : public BuiltinFunction {
 public:
  CastValue(TypePtr type, Symbol function) : BuiltinFunction(function), type_(std::move(type)) {}
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;

 private:
  TypePtr type_;
};

}  // namespace wick
