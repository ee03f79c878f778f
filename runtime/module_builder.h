// Building modules in C++.
//
//   ModuleBuilder net("Net");
//   net.registerParameter("weight", weight);
//   net.registerAttribute("eps", types::Float(), 1e-5);
//   net.define("def forward(self, x: Tensor) -> Tensor:\n    return x @ self.weight + self.eps\n");
//   Module module = net.build();
//   module.save("net.pt");
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/type.h"
#include "runtime/module.h"

#pragma GCC visibility push(default)

namespace wick {

class CompileErrors;
class GraphFunction;
struct Argument;

// Used by one thread. Names must be new: UsageError otherwise. Nothing may follow build().
class ModuleBuilder {
 public:
  // `class_name` is an identifier; the class is "__torch__.NAME", or `class_name` itself when that
  // begins with "__torch__.".
  explicit ModuleBuilder(const std::string& class_name);
  ~ModuleBuilder();
  ModuleBuilder(const ModuleBuilder&) = delete;
  ModuleBuilder& operator=(const ModuleBuilder&) = delete;

  ModuleBuilder& registerParameter(const std::string& name, Tensor tensor,
                                   bool requires_grad = true);
  ModuleBuilder& registerBuffer(const std::string& name, Tensor tensor);
  ModuleBuilder& registerModule(const std::string& name, const Module& module);
  // The value is fitted to the type (UsageError).
  ModuleBuilder& registerAttribute(const std::string& name, TypePtr type, IValue value);
  // Known while compiling, and not changed later: a `Final` of the class.
  ModuleBuilder& registerConstant(const std::string& name, IValue value);

  // Compiles functions and classes that methods may use, before define().
  ModuleBuilder& compile(const std::string& source, const std::string& file_name = "<string>");
  // Declares the methods in `source`, a sequence of `def name(self, …)`. Their bodies are compiled
  // by build(). CompileError.
  ModuleBuilder& define(const std::string& source, const std::string& file_name = "<string>");
  // A method that calls a function, with its arguments and defaults.
  ModuleBuilder& defineCall(const std::string& name, GraphFunction& function);

  // A method whose graph `make` sets when it is compiled; its first input is the module. `arguments` are those behind it.
  ModuleBuilder& defineGraph(const std::string& name, std::vector<Argument> arguments,
                             TypePtr result, std::function<void(GraphFunction&)> make);
  // The class that is being built.
  const ClassTypePtr& type() const { return type_; }

  // Keeps something alive as long as the module: the owner of functions that defineCall() took.
  void keep(std::shared_ptr<void> owner);

  // The finished module, in training mode. Throws CompileError; with `errors`, those of functions that do not compile are
  // added there, and the module is built without them.
  Module build(CompileErrors* errors = nullptr);

 private:
  struct Owner;
  void checkNew(const std::string& name) const;
  void add(const std::string& name, TypePtr type, IValue value, bool is_parameter, bool is_buffer);

  std::shared_ptr<Owner> owner_;
  ClassTypePtr type_;
  std::vector<IValue> values_;
};

}  // namespace wick

#pragma GCC visibility pop
