// Writing modules as programs of torch.export.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ivalue.h"
#include "runtime/module.h"

#pragma GCC visibility push(default)

namespace wick {

// A size of arguments that calls may change.
struct DynamicSize {
  std::string name;  // "N"
  int64_t least = 1;
  int64_t most = 64;
  int64_t step = 1;
};

// One example of arguments: a value for each dynamic size, and the arguments of these sizes.
struct ExportExample {
  std::vector<int64_t> sizes;
  std::vector<IValue>
      arguments;  // by position; those behind have their defaults, and are no arguments of the program
};

// The number of examples that open sizes need, and the sizes of one of them: the least and the most (but no size of one, which programs
// may treat in another way), and some between that are odd and even and do not change in step.
inline constexpr int64_t kExportExamples = 7;
std::vector<int64_t> exampleSizes(const std::vector<DynamicSize>& sizes, int64_t example);

struct ExportedOptions {
  std::string method = "forward";
  std::vector<DynamicSize> sizes{};
};

// Writes the method as a file that torch.export.load of PyTorch 2.8 and later reads, whole or not at all. The program is that of the
// module in evaluation mode: calls are inlined and attributes are constants; parameters and buffers keep their names. `examples`
// run on the method to learn dtypes and sizes: the first one decides sizes that are not dynamic; where sizes are dynamic, there are
// kExportExamples, one for each of exampleSizes(). Examples are not written to. The method must not write to attributes. If and Loop become cond and while_loop
// where their values are tensors. Throws RuntimeError with the line of the program for what exported programs cannot express.
void saveExported(const Module& module, const std::vector<ExportExample>& examples,
                  const std::string& path, const ExportedOptions& options = {});

}  // namespace wick

#pragma GCC visibility pop
