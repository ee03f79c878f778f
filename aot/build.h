// Ahead-of-time output: a function, for arguments of one signature, as C++17 text that needs no
// compiler and no interpreter when it runs. docs/aot.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aot/family.h"
#include "aot/program.h"
#include "aot/target.h"
#include "core/ivalue.h"

namespace wick {
class GraphFunction;
}

namespace wick::aot {

struct BuildOptions {
  std::string name;            // of the model: a C identifier
  bool embed_weights = false;  // in the program rather than in a file beside it
  // Of the registers in whose order sums are added: those of the engine whose bits are wanted.
  unsigned vector_bits = 256;
  const Target* target = nullptr;  // null: the CPU. The one that programs were recorded for.
};

struct BuildResult {
  std::vector<File> files;           // the model's source and header, and those of the runtime
  std::string weights_file;          // the name; "" when there are no weights
  std::vector<std::string> sources;  // of the files, those that are compiled
  bool needs_onednn = false, needs_lapack = false;
  bool for_device = false;  // whether there is a target
  size_t steps = 0, kernels = 0, primitives = 0;
  int64_t memory_bytes = 0, weights_bytes = 0;
};

struct RecordOptions {
  // Whether a function that is given no tensors is computed now, and its results kept as constants.
  bool fold = true;
  // Whether loops are loops of the compiled model wherever that is possible, but for those of few rounds whose
  // number the program's text tells. Otherwise those that elements of tensors decide about, and long ones.
  bool keep_loops = false;
  const Target* target = nullptr;  // null: the CPU
  // On the CPU: no library is called. Sums may be added in another order than the engine's; NotAhead for what only the
  // library computes.
  bool standalone = false;
  // On the CPU: convolutions of 3 x 3 points and stride one are computed by Winograd's method where that pays. Their last
  // bits differ from the engine's.
  bool winograd = false;
  // Of sizes that elements decide.
  DecidedSizes decided{};
};

// Records a call of the function, which compiles it first when that has not happened. Tensors among
// `arguments`, which are all that the function has, tell dtypes and sizes; all other arguments are
// fixed. Throws NotAhead (aot/recording.h) for what cannot be compiled, and what a call raises.
// While it runs the process's default device is another, so nothing else may run.
// When elements decide sizes the program is that of one choice of them; `function` and what `arguments` refer to
// live until build() has returned, which records the others.
Program record(GraphFunction& function, const std::vector<IValue>& arguments,
               const RecordOptions& options = {});

// One method for arguments of one signature.
struct Entry {
  std::string method = "forward";
  Program program{};
  std::optional<Family> family{};  // for many sizes, in place of the program
  // What the program was recorded of, when nobody else holds it.
  std::shared_ptr<GraphFunction> holds{};
};

// The function for all sizes that `symbols` have. `arguments` makes those of a call with these sizes, one of each
// symbol; dtypes and ranks are always the same. `function` and what `arguments` refers to live until
// build() has returned.
Family familyOf(GraphFunction& function, std::vector<Symbol> symbols,
                std::function<std::vector<IValue>(const std::vector<int64_t>&)> arguments,
                const RecordOptions& options = {});

// Writes programs as text, of one library. Entries of one method are its signatures, which have one
// function; equal weights are kept once. `write_weights` is given the weights file piece by piece. NotAhead
// for functions that have no text.
BuildResult build(std::vector<Entry> entries, const BuildOptions& options,
                  const std::function<void(std::string_view)>& write_weights);
// Of one entry.
BuildResult build(Program program, const BuildOptions& options,
                  const std::function<void(std::string_view)>& write_weights);

// The command that compiles the files, in their folder, as a shared library. `compiler` is a C++
// compiler's name.
std::vector<std::string> compileCommand(const BuildResult& result, const std::string& name,
                                        const std::string& compiler);

// The same as one object file, `joined`: commands that make one of each source, `objects`, and join them.
struct ObjectCommands {
  std::vector<std::string> compile, join, objects;
  std::string joined;
};
ObjectCommands objectCommands(const BuildResult& result, const std::string& name,
                              const std::string& compiler);

}  // namespace wick::aot
