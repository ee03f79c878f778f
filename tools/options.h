// The command line of torchscript-cli.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/pipeline_options.h"
#include "tools/train_options.h"

namespace wick::cli {

struct Options {
  void (*verb)(const Options& options) = nullptr;  // one of tools/verbs.h
  std::string file;                                // an archive or a script
  std::string second_file;                         // of the verbs that take two
  std::vector<std::string> plugins;                // libraries that are loaded before anything else
  std::vector<std::string> paths;  // archives, scripts and folders, for the verb that takes many
  std::string method;              // of the archive's module; empty: forward
  std::string function;            // of the script; empty: main, or the only function
  std::string inputs_file;
  std::vector<std::string> inputs;       // see tools/inputs.h
  std::string output_file;               // .pt or .npy; empty: print
  std::string output_folder;             // of build
  std::string name;                      // of the model that build writes; empty: the file's
  std::string emit;                      // "" or "source", "library", "object": what build writes
  std::vector<std::string> also;         // further calls that build compiles: "METHOD SPEC…"
  std::string format;                    // of the file that save writes; "": as its name ends
  std::vector<std::string> ranges;       // of sizes with names in inputs of build: "N=1..64"
  std::vector<std::string> fixed_sizes;  // the same, of one size: "N=4"
  bool standalone = false;               // whether build leaves oneDNN out
  bool winograd = false;                 // whether it computes convolutions by that method
  std::string architectures;             // of build for CUDA: "sm_80,sm_90"; empty: the usual ones
  bool embed_weights = false;            // in the library rather than beside it
  std::string submodule;                 // dotted name of the one that is extracted
  std::string weights;                   // state that the module gets first; empty: its own
  bool freeze = false;                   // save makes attributes constants
  bool fold = false;                     // and folds and joins layers
  std::string dtype;                     // of floating parameters and buffers; empty: as they are
  bool grad = false;
  bool detect_anomaly = false;  // name what makes a gradient NaN
  int threads = 0;              // 0: as the machine has
  double time_limit = 0;        // seconds for the whole command; 0: none
  uint64_t memory_limit = 0;    // bytes; 0: none but what the machine has
  int iterations = 0;           // 0: as many as fit into the duration
  double duration = 0;          // seconds; 0: a second and a half
  int concurrency = 1;          // threads of bench that call the program at the same time
  bool no_prepare = false;      // bench runs the program as it is
  bool verbose = false;         // bench tells about compiled code
  std::string compare;          // what bench also measures; empty or "interpreter"
  int warm_up = -1;             // calls; -1: as many as fit into 300 ms
  bool json = false;
  bool dot = false;
  bool svg = false;
  std::string depth;  // of modules in pictures: a number, "all", or empty: as fits a screen
  bool eval = false;  // the module in evaluation mode
  std::optional<uint64_t> seed;  // of random numbers; the program's and the inputs' own without
  std::string shell;             // whose completions are printed
  bool memory = false;           // run reports its peak
  bool prepare = false;          // run prepares the method for inference first
  std::string stage;             // of the graph; empty: as the front end made it
  std::string optimize;          // "0", "1", "stress"; empty: WICK_OPTIMIZE decides
  std::string expect;            // result that run compares its own with; empty: none
  double tolerance = 0;          // relative, of values that are compared
  double atol = 0;               // absolute, of values that are compared
  double rtol = 0;               // relative to each expected number
  std::string trace_file;        // where profile writes its events
  int top = 0;                   // rows that profile shows; 0: all
  TrainOptions train;            // of evaluate its data, target, loss and batch_size
  std::string loss_function;     // of the script of evaluate's --loss; empty: main, or the only one
  PipelineOptions pipeline;
  std::string device;     // where module, arguments and new tensors are; empty: the CPU
  std::string tf32;       // what may round factors of float32 on the device
  std::string autocast;   // dtype of products on the device; empty: as the program says
  bool fallback = false;  // operators without a kernel for the device run on the CPU
};

// The command line itself is wrong: exit code 2.
class CommandLineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What --help and --version print; the caller prints it and exits with 0.
struct HelpRequested {
  std::string text;
};

// Throws CommandLineError or HelpRequested.
Options parseOptions(int argc, const char* const* argv);

// What verbs and flags there are, for the completions of shells.
struct VerbWords {
  std::string name;
  std::string help;
  std::vector<std::pair<std::string, std::string>> flags;  // "--input" and its help
};
std::vector<VerbWords> listVerbs();

}  // namespace wick::cli
