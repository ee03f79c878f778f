// Arguments from the command line: the language of --input, and the files of --inputs.
//
//   input   = [NAME "="] value | "=" filling
//   value   = tensor | "@" FILE.npy | "@" FILE.pt | literal
//   tensor  = sizes ["=" filling]              1x3x224x224xf32, 0x4xi64, f32 (no dimensions)
//   filling = "random" | "zeros" | "ones" | "@" FILE.npy
//   literal = 3 | 2.5 | 1e-3 | 2j | True | False | None | "text" | 'text' | [value, ...] |
//             (value, ...) | {value: value, ...}
//
// The last part of a tensor's sizes may be its dtype: f16 f32 f64 bf16 i8 i16 i32 i64 u8 bool c64 c128,
// fp16 fp32 fp64, or torch's names; without one it is f32. Random numbers are uniform in [0, 1), integers in 0..9, always the same ones.
// "=random" and "=zeros" without sizes suit arguments that are not tensors: their type tells the
// rest. In `build` a size may be a name in capital letters (tools/named_sizes.h). Where a Tensor is
// declared nested lists of numbers become one, as torch.tensor() makes it: ints int64, others of the
// default dtype.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/function_schema.h"
#include "core/ivalue.h"

namespace wick::cli {

enum class Filling { None, Random, Zeros, Ones };

struct Input {
  std::string name;                 // empty: by position
  Filling filling = Filling::None;  // of an input without value: depends on the argument's type
  IValue value;
};

// Makes random numbers the same way in every run, apart from the programs' own generator.
class InputParser {
 public:
  explicit InputParser(uint64_t seed = 0) : generator_(makeRef<GeneratorObject>(seed)) {}
  // Throws CommandLineError that says where in `text` what was expected; LoadError for files.
  Input parse(std::string_view text);
  // A value for "=random" and the like. CommandLineError for types that tell too little (a tensor
  // without shape).
  IValue fill(const Type& type, Filling filling, const std::string& argument);
  Tensor tensor(IntSpan sizes, DType dtype, Filling filling);

 private:
  Ref<GeneratorObject> generator_;
};

struct Arguments {
  std::vector<IValue> positional;
  std::vector<std::pair<std::string, IValue>> named;
};

// The inputs in the order of `schema`, whose first `skip` arguments (self) are not asked for.
// Throws CommandLineError that lists what is still needed.
Arguments argumentsFromInputs(const std::vector<std::string>& inputs, const FunctionSchema& schema,
                              size_t skip, uint64_t seed = 0);

// The value with tensors in place of nested lists of numbers, wherever the type asks for one.
// CommandLineError for lists of unequal lengths, and of what tensors cannot hold.
IValue withTensors(IValue value, const Type& type, const std::string& argument);

// Reads "args" and "kwargs" of a torch.save'd dict; other keys are ignored. Throws LoadError.
Arguments argumentsFromFile(const std::string& path);

// The array of a .npy file, or the value of a file of torch.save; contents decide. Throws LoadError.
IValue valueIn(const std::string& path);

// "x: Tensor, alpha: float = 1.0" of the arguments from `first` on.
std::string describeArguments(const FunctionSchema& schema, size_t first);

}  // namespace wick::cli
