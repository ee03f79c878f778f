// Module: a handle on an instance of a module class, with the names that PyTorch gives its parts.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "core/value_conversions.h"
#include "runtime/run_options.h"

#pragma GCC visibility push(default)

namespace wick {

class GraphFunction;

// Copies share the module. Any number of threads may run methods at a time; changing attributes,
// train() and to() are for one thread while no other runs the module. Functions that look up a name
// throw UsageError when there is none.
class Module {
 public:
  template <class T>
  using Named = std::vector<std::pair<std::string, T>>;

  // No module, as after a move: all but valid(), object(), == and assignment throw UsageError.
  Module() = default;
  // Throws UsageError unless the object is of a module class.
  explicit Module(ObjectRef object);

  bool valid() const { return static_cast<bool>(object_); }
  const ObjectRef& object() const { return object_; }
  const ClassTypePtr& type() const { return known()->type(); }
  friend bool operator==(const Module& a, const Module& b) { return a.object_ == b.object_; }

  bool hasAttr(const std::string& name) const;
  const IValue& attr(const std::string& name) const;
  // Fits the value to the declared type; UsageError when it does not.
  void setAttr(const std::string& name, IValue value);
  Module submodule(const std::string& dotted_name) const;

  // In the order of declaration, depth first, with dotted names when recursive ("layer1.0.weight").
  // Tensors or modules that occur under several names are listed under each.
  Named<Tensor> parameters(bool recurse = true) const;
  Named<Tensor> buffers(bool recurse = true) const;
  Named<IValue> attributes(bool recurse = true) const;
  Named<Module> children() const;
  // This module under the name "" and everything below it.
  Named<Module> modules() const;

  std::vector<std::string> methodNames() const;
  // Null when there is none.
  GraphFunction* findMethod(const std::string& name) const;
  GraphFunction& method(const std::string& name) const;
  IValue run(const std::string& method_name, std::vector<IValue> arguments, Kwargs kwargs = {},
             const RunOptions& options = {}) const;
  // The same with arguments by name alone: run("encode", {{"x", x}}).
  IValue run(const std::string& method_name, NamedArguments named,
             const RunOptions& options = {}) const {
    return run(method_name, std::vector<IValue>(), toKwargs(named), options);
  }
  IValue forward(std::vector<IValue> arguments, Kwargs kwargs = {},
                 const RunOptions& options = {}) const {
    return run("forward", std::move(arguments), std::move(kwargs), options);
  }
  IValue forward(NamedArguments named, const RunOptions& options = {}) const {
    return run("forward", named, options);
  }
  // Calls the module as a program does: its pre-hooks, which see the positional arguments as one
  // tuple and may replace them, then forward, then its hooks, which see the arguments and the
  // result and may replace the result. (forward() is the method alone, as in PyTorch.)
  // By position, model({x}), by both, model({x}, {{"threshold", 0.3}}), or by name, model({{"x", x}}).
  IValue operator()(std::vector<IValue> arguments, Kwargs kwargs = {},
                    const RunOptions& options = {}) const;
  IValue operator()(NamedArguments named, const RunOptions& options = {}) const {
    return (*this)(std::vector<IValue>(), toKwargs(named), options);
  }
  bool hasHooks() const;

  // Sets the attribute "training" of this module and all below it that have one. The result is this
  // module, so that calls may follow: wick::load("model.pt").eval().
  Module train(bool on = true) const;
  Module eval() const { return train(false); }
  bool isTraining() const;
  // Converts floating-point parameters and buffers in place: every holder of such a tensor sees it
  // changed, as in PyTorch. The result is this module.
  Module to(DType dtype) const;
  // Moves all tensors that the module and what it holds have, in place: parameters, buffers, tensors in
  // other attributes, and the constants in the code of their classes (but for those without dimensions,
  // which join tensors of any device), which other modules of these classes share. Arguments of calls
  // must be there, too. Nobody may run code of the module meanwhile; anything made of it before
  // (optimizeForInference, freeze, traces) is to be made again. Gradients stay where they were.
  // RuntimeError when there is no such device, its memory is exhausted, or a parameter or buffer is of
  // a kind that cannot be moved; tensors that were moved until then stay there. The result is this module.
  Module to(Device device) const;

  // Parameters and buffers by dotted name, Dict[str, Tensor]: of each module its parameters, its
  // buffers, then its submodules. The tensors are the module's own, not copies.
  IValue stateDict() const;
  struct StateMismatch {
    std::vector<std::string> missing;     // names that the state lacks
    std::vector<std::string> unexpected;  // names that the module lacks
  };
  // Copies the numbers of `state` (a dict of tensors by name, as stateDict() gives and torch.save
  // writes) into the parameters and buffers, in place; dtypes are converted, shapes must agree.
  // UsageError that lists all that does not fit, and then nothing is changed. Without `strict`,
  // names that are missing or unexpected are returned instead.
  StateMismatch loadStateDict(const IValue& state, bool strict = true) const;

  // Writes the module as torch.jit.save does: see serialization/export.h, which these are part of
  // (//serialization:export), for options and errors. A file is replaced as a whole.
  void save(const std::string& path) const;
  void save(std::ostream& stream) const;
  std::string saveToString() const;

  // A deep copy of attributes and tensors; tensors that share memory still do. Code is shared.
  Module clone() const;

 private:
  template <class F>
  void forEachSlot(const std::string& prefix, bool recurse, size_t depth, size_t& names,
                   F&& f) const;
  const ObjectRef& known() const {
    if (!object_) throwEmpty();
    return object_;
  }
  [[noreturn]] static void throwEmpty();
  ObjectRef object_;
};

// value.to<wick::Module>().
template <>
struct ValueConversion<Module> {
  static Module from(const IValue& v) {
    if (!v.isObject() || !v.toObject().type()->isModule()) detail::throwExpected("a module", v);
    return Module(ObjectRef(&v.toObject()));
  }
};

}  // namespace wick

#pragma GCC visibility pop
