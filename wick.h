// Wick, an engine for TorchScript. This header is all that an application includes.
//
//   wick::Program program = wick::compile("def twice(x: Tensor) -> Tensor:\n    return x + x\n");
//   wick::IValue y = program.call("twice", {wick::Tensor::from({1.f, 2.f})});
//
//   auto model = wick::load("model.pt").eval();
//   auto x = wick::Tensor::from(pixels, {1, 3, 64, 96});  // a vector, span, array or braced list
//   for (const auto& found : model({x, 0.3}))             // lists, tuples and dicts iterate
//     for (float score : found["scores"].tensor().span<float>()) std::printf("%g\n", score);
//   model.save("copy.pt");
//
// Values are wick::IValue (core/ivalue.h), which C++ types become and are made of
// (core/value_conversions.h); tensors are wick::Tensor (core/tensor.h). Operators as functions,
// wick::ops::matmul, are in a header of their own, wick_ops.h. Programs and modules may be run from
// any number of threads at a time. Errors are subclasses of wick::Error (core/error_types.h);
// what() is ready to print.
#pragma once

#if __cplusplus < 202002L
#error "Wick needs C++20: compile with -std=c++20 (GCC 12, clang 14 or later)"
#else

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/allocator.h"
#include "core/budget.h"
#include "core/dlpack.h"
#include "core/error_types.h"
#include "core/grad_mode.h"
#include "core/ivalue.h"
#include "core/messages.h"
#include "core/tensor.h"
#include "core/value_conversions.h"
#include "core/version.h"
#include "extensions/extension.h"
#include "extensions/plugin.h"
#include "runtime/autocast.h"
#include "runtime/call.h"
#include "runtime/frozen_module.h"
#include "runtime/inference.h"
#include "runtime/jit_mode.h"
#include "runtime/module.h"
#include "runtime/module_builder.h"
#include "runtime/profile.h"
#include "runtime/run_options.h"
#include "runtime/threads.h"
#include "serialization/device_map.h"
#include "serialization/export.h"
#include "serialization/load_options.h"
#include "serialization/tensor_files.h"
#include "serialization/torch_save.h"
#include "tracing/trace.h"
#include "training/backward.h"
#include "training/clip.h"
#include "training/grad_scaler.h"
#include "training/optimizer.h"
#include "training/schedule.h"

#pragma GCC visibility push(default)

namespace wick {

class CompilationUnit;
class GraphFunction;

// A compiled source text. Copies share it.
class Program {
 public:
  // Throws UsageError for null.
  explicit Program(std::shared_ptr<CompilationUnit> unit);
  // Null after a move, when all other functions throw UsageError.
  const std::shared_ptr<CompilationUnit>& unit() const { return unit_; }
  // Names of the top-level functions in the order of the text.
  std::vector<std::string> functionNames() const;
  // Throws UsageError when there is none.
  GraphFunction& function(const std::string& name) const;
  // See callFunction in runtime/call.h.
  IValue call(const std::string& name, std::vector<IValue> arguments, Kwargs kwargs = {},
              RunOptions options = {}) const;
  // The same with arguments by name alone: call("f", {{"x", x}}).
  IValue call(const std::string& name, NamedArguments named, RunOptions options = {}) const {
    return call(name, std::vector<IValue>(), toKwargs(named), std::move(options));
  }

 private:
  CompilationUnit& known() const;
  std::shared_ptr<CompilationUnit> unit_;
  std::shared_ptr<void> owner_;  // the unit, as runs want it
};

// Prints sizes and strides: "[2, 3]".
std::ostream& operator<<(std::ostream& out, IntSpan sizes);

// Compiles functions and classes. `file_name` stands in messages. Throws CompileError.
Program compile(const std::string& source, const std::string& file_name = "<string>");

// Runs C++ code once and makes a program of the operators that it called: see tracing/trace.h.
Program trace(const TracedCode& code, const std::vector<IValue>& example_inputs,
              const TraceOptions& options = {});

// Reads a module that PyTorch saved with torch.jit.save. Throws LoadError, CompileError for the
// program in the file, or RuntimeError when everything goes to a device that this machine lacks.
//   std::unordered_map<std::string, std::string> extra;
//   auto model = wick::load("model.pt", {.devices = wick::Device("cuda:1"), .extra_files = &extra});
Module load(const std::string& path, const LoadOptions& options = {});
// The same from a stream, to its end.
Module load(std::istream& stream, const LoadOptions& options = {});
// The same from memory, which is copied.
Module loadFromMemory(std::span<const std::byte> bytes, const LoadOptions& options = {});

}  // namespace wick

#pragma GCC visibility pop

#endif  // C++20
