// The only file that includes CLI11, whose headers take long to compile.
#include "tools/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <set>
#include <sstream>

#include "core/suggestions.h"
#include "core/version.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

constexpr const char* kDataHelp =
    "samples: a file of named tensors (.npz, .pt of torch.save, .safetensors), a folder of .npy "
    "files, each the tensor "
    "of its name, or .npy files, the inputs in order and last the targets";

constexpr const char* kInputHelp =
    "one argument, in order, or NAME=SPEC by name. SPEC is a shape (1x3x224x224xf32, or without "
    "the "
    "dtype, which is f32 then; filled at random; =zeros, =ones, =random or =@x.npy may follow), a "
    "file (@x.npy, or @x.pt of "
    "torch.save), or a literal (3, -2.5, True, None, \"text\", [1, 2], (1x3xf32, 4), {\"a\": 1}). "
    "Where a Tensor is declared, lists of numbers become one: [[1, 2], [3, 4]]";

// One value each time, taken as it is: a literal may begin with "[" or "-".
void repeatable(CLI::Option* option) {
  option->type_size(1)->expected(1)->allow_extra_args(false)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
}

// A number within bounds, which nan is not.
CLI::Validator numberIn(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool is_number = !text.empty() && *end == '\0';
    if (is_number && value >= least && value <= most) return {};
    return fmt::format("expected a number from {} to {}, got {}", least, most, text);
  };
  return CLI::Validator(check, fmt::format("in [{} - {}]", least, most), "number");
}
CLI::Validator finiteNumber() {
  return numberIn(-1e300, 1e300).description("");
}

// At least one byte.
std::string checkSize(const std::string& text) {
  const bool counts = !text.empty() && text[0] >= '0' && text[0] <= '9' &&
                      text.find_first_of("123456789") != text.npos;
  return counts ? std::string()
                : fmt::format(
                      "expected a size of at least one byte (1G, 500M), got {}; without the flag "
                      "there is no limit",
                      text);
}

// Limits for verbs that load or run files from anyone.
void addLimits(CLI::App& verb, Options& options) {
  repeatable(verb.add_option(
      "--plugin", options.plugins,
      "library with operators and classes, loaded first; it is code, and runs as such"));
  verb.add_option("--time-limit", options.time_limit,
                  "seconds for loading, compiling and running together")
      ->check(numberIn(0.001, 1e9));
  verb.add_option("--memory-limit", options.memory_limit,
                  "bytes that tensors, values and programs may take (1G, 500M)")
      ->check(CLI::Validator(checkSize, "", "size"))
      ->transform(CLI::AsSizeValue(false));
}

void addMode(CLI::App& verb, Options& options) {
  verb.add_flag("--eval", options.eval, "put the archive's module into evaluation mode first");
  verb.add_option("--seed", options.seed, "where random numbers begin, those of --input too");
}

void addOptimize(CLI::App& verb, Options& options) {
  verb.add_option("--optimize", options.optimize,
                  "0: none; 1: default; stress: all that is possible")
      ->check(CLI::IsMember({"0", "1", "stress"}));
}

void addInputs(CLI::App& verb, Options& options) {
  verb.add_option("--inputs", options.inputs_file,
                  "file of torch.save: a dict with \"args\" (tuple) and \"kwargs\" (dict)");
  repeatable(verb.add_option("--input", options.inputs, kInputHelp));
}

void addDevice(CLI::App& verb, Options& options) {
  verb.add_option(
      "--device", options.device,
      "where the module, the arguments and new tensors are: cpu, cuda, cuda:N, or lazy: "
      "calls are recorded and run as one graph where a value is needed, on the CPU, or with "
      "lazy:cuda there (cpu)");
}

void addAutocast(CLI::App& verb, Options& options) {
  verb.add_option("--autocast", options.autocast,
                  "mixed precision, as within torch.autocast of the device: products in float16 or "
                  "bfloat16, what needs range in float32")
      ->check(CLI::IsMember({"float16", "bfloat16"}));
}

void addTf32(CLI::App& verb, Options& options) {
  verb.add_option("--tf32", options.tf32,
                  "what may round factors of float32 to 10 bits of fraction on the device: off, "
                  "convolutions (as PyTorch at first) or all (off)")
      ->check(CLI::IsMember({"off", "convolutions", "all"}));
}

void addThreads(CLI::App& verb, Options& options, const char* help) {
  verb.add_option("--threads", options.threads, help)->check(CLI::Range(1, 1024));
}

void addDType(CLI::App& verb, Options& options, const char* help) {
  verb.add_option("--dtype", options.dtype, help)
      ->check(CLI::IsMember({"f16", "bf16", "f32", "f64"}));
}

// Tolerances for values that are compared with recorded ones.
void addTolerances(CLI::App& verb, Options& options) {
  verb.add_option(
          "--tolerance", options.tolerance,
          "numbers count as equal up to this share of the largest number in the two tensors (0)")
      ->check(numberIn(0.0, 1.0));
  verb.add_option("--atol", options.atol,
                  "or up to this difference, plus --rtol times the expected number, as in "
                  "torch.allclose (0)")
      ->check(numberIn(0.0, 1e300));
  verb.add_option("--rtol", options.rtol, "share of each expected number (0)")
      ->check(numberIn(0.0, 1e300));
}

void addInputFlags(CLI::App& verb, Options& options) {
  verb.add_option("--method", options.method,
                  "method of the archive's module (a call of the module: forward with its hooks)");
  verb.add_option("--function", options.function, "function of the script (main)");
  addInputs(verb, options);
  addMode(verb, options);
  addDevice(verb, options);
  addTf32(verb, options);
  addAutocast(verb, options);
  verb.add_flag("--fallback", options.fallback,
                "compute operators that the device lacks on the CPU, and say which at the end");
  verb.add_flag("--grad", options.grad, "run with gradient mode on");
  addThreads(verb, options, "threads within an operator");
  addOptimize(verb, options);
}

void addPrepare(CLI::App& verb, Options& options) {
  verb.add_flag("--prepare", options.prepare,
                "optimize for inference first, as an application that serves the archive");
}

void addGraph(CLI::App* verb, Options& options) {
  verb->add_option("--method", options.method, "method of the archive's module (all)");
  verb->add_option("--function", options.function, "function of the script (all)");
  verb->add_option("--stage", options.stage,
                   "after this pass or phase; source, specialized (with --input), code, llvm, "
                   "asm, cuda, ptx, sass, inference or a name that an unknown one lists");
  addInputs(*verb, options);
  addOptimize(*verb, options);
  verb->add_flag(
      "--dot", options.dot,
      "Graphviz text of one method (forward) or function, calls inlined unless --stage says "
      "otherwise: a box a module; with --input edges tell shapes");
  verb->add_flag("--svg", options.svg, "the picture itself; needs Graphviz's program dot");
  verb->add_option(
      "--depth", options.depth,
      "of pictures: how many levels of modules are opened (as many as fit a screen), or "
      "all: a box an operator");
  verb->add_option("--output", options.output_file,
                   "write to this file; one that ends in .svg, .dot or .gv is a picture, one that "
                   "ends in .txt, .ir, .ll, .s, .cu, .ptx, .sass or without an ending is text");
}

void addBench(CLI::App* verb, Options& options) {
  addInputFlags(*verb, options);
  verb->add_flag("--no-prepare", options.no_prepare,
                 "time the method as it is, as run and profile call it without --prepare");
  verb->add_option("--concurrency", options.concurrency,
                   "threads that call the program at the same time, each with --threads threads "
                   "within an operator (1); times are of single calls, the throughput of all")
      ->check(CLI::Range(1, 256));
  verb->add_option("--iterations", options.iterations, "calls to time (as fit into --duration)")
      ->check(CLI::Range(1, 1000000000));
  verb->add_option("--duration", options.duration, "seconds to spend on timed calls (1.5)")
      ->check(numberIn(0.001, 1e6));
  verb->add_option("--warm-up", options.warm_up, "calls before the timed ones (0.3 s of them)")
      ->check(CLI::Range(0, 1000000000));
  verb->add_option("--compare", options.compare, "interpreter: the same without machine code")
      ->check(CLI::IsMember({"interpreter"}));
  verb->add_flag("--verbose", options.verbose,
                 "also tell how much machine code was compiled, and which calls ran it");
  verb->add_flag("--json", options.json, "print one JSON object");
}

void addProfile(CLI::App* verb, Options& options) {
  addInputFlags(*verb, options);
  verb->add_option("--iterations", options.iterations, "calls to add up (10)")
      ->check(CLI::Range(1, 1000000));
  addPrepare(*verb, options);
  verb->add_option("--top", options.top, "show the N most expensive rows (all)")
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--trace", options.trace_file, "write the events as JSON for Perfetto");
  verb->add_flag("--json", options.json, "print one JSON object");
}

void addArchiveOutput(CLI::App& verb, Options& options) {
  verb.add_option("--output", options.output_file,
                  "the archive to write (.pt), whole or not at all")
      ->required();
}

// The verbs that write and compare files; `verb` makes one, as in defineVerbs().
template <class MakeVerb>
void addFileVerbs(const MakeVerb& verb, Options& options, const char* either) {
  CLI::App* save = verb(saveVerb, "save", "write an archive that torch.jit.load reads", either);
  addArchiveOutput(*save, options);
  save->add_option(
      "--weights", options.weights,
      "give the module these tensors first (a state of torch.save, .safetensors, .npz, or an "
      "archive)");
  save->add_flag("--freeze", options.freeze,
                 "make attributes constants, as torch.jit.freeze; sets evaluation mode");
  save->add_flag("--optimize", options.fold,
                 "freeze, fold batch normalization and factors into layers, join layers");
  save->add_option("--method", options.method, "the method that a frozen module has (forward)");
  addDType(*save, options, "convert floating parameters and buffers: f16, bf16, f32 or f64");
  save->add_option("--format", options.format,
                   "pt, or pt2 (as the name of the output tells): the program that "
                   "torch.export.load reads, for "
                   "arguments as --input describes them")
      ->check(CLI::IsMember({"pt", "pt2"}));
  addInputs(*save, options);
  save->add_option("--range", options.ranges,
                   "the sizes that a name in --input stands for, NAME=SMALLEST..LARGEST[:STEP] "
                   "(1..64): --input Nx3xf32 --range N=1..256; repeatable")
      ->take_all();

  const char* tensors = "tensors: .pt (torch.save, or a module's state), .safetensors, .npz, .npy";
  CLI::App* convert = verb(convertVerb, "convert", "write tensors in another format", tensors);
  convert
      ->add_option("output", options.output_file,
                   "the file to write; its end tells the format: .pt, .safetensors, .npz, .npy")
      ->required();

  CLI::App* diff =
      verb(diffVerb, "diff",
           "compare two archives, or two files of tensors, and tell where and by how much they "
           "differ; exit code 1 when they do",
           "an archive or a file of tensors");
  diff->add_option("other", options.second_file, "what it is compared with")->required();
  addTolerances(*diff, options);

  CLI::App* extract = verb(extractVerb, "extract", "write a submodule as an archive", "model.pt");
  extract->add_option("submodule", options.submodule, "its dotted name (layer1.0)")->required();
  addArchiveOutput(*extract, options);
}

// What an optimizer and its schedule may be told.
void addOptimizer(CLI::App& verb, TrainOptions& train) {
  verb.add_option("--optimizer", train.optimizer, "sgd, adam, adamw (default), rmsprop, adagrad")
      ->check(CLI::IsMember({"sgd", "adam", "adamw", "rmsprop", "adagrad"}));
  verb.add_option("--lr", train.lr, "learning rate (PyTorch's of the optimizer)")
      ->check(finiteNumber());
  verb.add_option("--momentum", train.momentum, "of sgd and rmsprop")->check(finiteNumber());
  verb.add_option("--dampening", train.dampening, "of sgd's momentum")->check(finiteNumber());
  verb.add_flag("--nesterov", train.nesterov, "sgd with Nesterov's momentum");
  verb.add_option("--weight-decay", train.weight_decay, "of all optimizers")->check(finiteNumber());
  verb.add_option("--betas", train.betas, "two numbers, of adam and adamw")
      ->expected(2)
      ->check(finiteNumber());
  verb.add_option("--eps", train.eps, "a small number that is added to denominators")
      ->check(finiteNumber());
  verb.add_flag("--amsgrad", train.amsgrad, "adam and adamw with the largest square");
  verb.add_option("--alpha", train.alpha, "how long rmsprop remembers")->check(finiteNumber());
  verb.add_flag("--centered", train.centered, "rmsprop with the variance");
  verb.add_option("--lr-decay", train.lr_decay, "of adagrad")->check(finiteNumber());
  verb.add_option("--schedule", train.schedule,
                  "of the rate: constant, step, multistep, exponential (by epochs), cosine, linear "
                  "(to 0), onecycle (over all steps)")
      ->check(CLI::IsMember(
          {"constant", "step", "multistep", "exponential", "cosine", "linear", "onecycle"}));
  verb.add_option("--step-size", train.step_size, "epochs, of the schedule step")
      ->check(CLI::Range(1, 1000000000));
  verb.add_option("--milestones", train.milestones, "epochs, of the schedule multistep")
      ->delimiter(',')
      ->check(CLI::Range(0, 1000000000));
  verb.add_option("--gamma", train.gamma, "factor of step, multistep and exponential (0.1)")
      ->check(finiteNumber());
  verb.add_option("--min-lr", train.min_lr, "where cosine ends (0)")->check(finiteNumber());
  verb.add_option("--warm-up", train.warm_up, "steps in which the rate grows to its size")
      ->check(CLI::Range(0, 1000000000));
  verb.add_option("--clip-norm", train.clip_norm, "largest norm of all gradients together")
      ->check(numberIn(0.0, 1e300));
  verb.add_option("--clip-value", train.clip_value, "largest gradient of an element")
      ->check(numberIn(0.0, 1e300));
}

void addBuild(CLI::App* verb, Options& options) {
  verb->add_option("--method", options.method, "method of the archive's module (forward)");
  verb->add_option("--function", options.function, "function of the script (main)");
  addInputs(*verb, options);
  verb->add_option("--seed", options.seed, "where random numbers of --input begin");
  verb->add_option(
          "--also", options.also,
          "a further method, or the same one for other arguments, in the same library: its "
          "name and then what --input takes, with spaces between; repeatable")
      ->take_all();
  verb->add_option("--range", options.ranges,
                   "the sizes that a name in --input stands for, NAME=SMALLEST..LARGEST[:STEP] "
                   "(1..64): --input Nx3xf32 --range N=1..256; repeatable")
      ->take_all();
  verb->add_option("--static", options.fixed_sizes,
                   "the one size that a name in --input stands for, NAME=SIZE; repeatable")
      ->take_all();
  verb->add_option("--output", options.output_folder, "the folder to write into")->required();
  verb->add_option("--name", options.name,
                   "of the model in C: NAME_init, NAME_forward (the file's)");
  verb->add_option("--emit", options.emit,
                   "source: C++17 text and the command that compiles it; library: also a shared "
                   "library, by the compiler that CXX names (g++); object: an object file instead")
      ->check(CLI::IsMember({"source", "library", "object"}));
  verb->add_option(
          "--device", options.device,
          "what the model runs on: cpu or cuda, for which CUDA's compiler NVRTC is needed and no "
          "device (cpu)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  verb->add_option(
      "--arch", options.architectures,
      "with --device cuda: architectures that the kernels have machine code for; later "
      "ones compile them when the model starts (sm_80,sm_90)");
  addTf32(*verb, options);
  verb->add_flag(
      "--standalone", options.standalone,
      "for the CPU without oneDNN: the library needs nothing else and starts sooner; large "
      "products are slower, and sums may differ from the engine's in the last bits");
  verb->add_flag("--winograd", options.winograd,
                 "for the CPU: convolutions of 3 x 3 points and stride one by Winograd's method, "
                 "with fewer multiplications; their last bits differ from the engine's");
  verb->add_flag("--embed-weights", options.embed_weights,
                 "keep the weights in the library rather than in a file beside it");
}

void addTrain(CLI::App& app, Options& options) {
  TrainOptions& train = options.train;
  CLI::App* verb = app.add_subcommand("train", "train a module, and write it as an archive");
  verb->add_option("file", options.file, "model.pt of torch.jit.save")->required();
  verb->callback([&options] { options.verb = trainVerb; });
  verb->add_option("--data", train.data, kDataHelp)->required()->expected(1, 64);
  verb->add_option("--target", train.target,
                   "name of the targets in the file (y, target, targets, label or labels)");
  verb->add_option("--loss", train.loss,
                   "cross_entropy, nll, mse, l1, smooth_l1, bce, bce_with_logits; a script (.py) "
                   "with a function of the output and the targets; model: its result is the loss")
      ->required();
  verb->add_option("--function", options.function, "function of the script of --loss (main)");
  verb->add_option("--method", options.method, "method of the module (a call of the module)");
  verb->add_option("--weights", options.weights,
                   "begin with these tensors (a state of torch.save, .safetensors, .npz, or an "
                   "archive) instead of the model's own");
  addArchiveOutput(*verb, options);
  addOptimizer(*verb, train);
  verb->add_option("--epochs", train.epochs, "times that each sample is seen (1)")
      ->check(CLI::Range(1, 1000000000));
  verb->add_option("--batch-size", train.batch_size, "samples of a step (32)")
      ->check(CLI::Range(1, 1000000000));
  verb->add_flag("--drop-last", train.drop_last, "leave out a last batch that is smaller");
  verb->add_flag("--no-shuffle", train.no_shuffle, "take the samples in the order of the file");
  verb->add_option("--validation", train.validation, "share of the samples kept for validation")
      ->check(numberIn(0.0, 1.0));
  verb->add_option("--validation-data", train.validation_data, "samples for validation, as --data")
      ->expected(1, 64);
  addDevice(*verb, options);
  addDType(*verb, options, "convert floating parameters, buffers and data: f16, bf16, f32 or f64");
  addAutocast(*verb, options);
  verb->add_option("--seed", options.seed, "of orders and random numbers (0)");
  verb->add_option("--checkpoint", train.checkpoint, "file to go on from, written every epoch");
  verb->add_option("--checkpoint-every", train.checkpoint_every, "written every so many steps")
      ->check(CLI::Range(1, 1000000000));
  verb->add_flag("--resume", train.resume, "go on from the checkpoint, if there is one");
  verb->add_option("--log", train.log, "file of JSON lines: every step and epoch");
  verb->add_option("--plot", train.plot, "picture of the losses (.svg), new every epoch");
  verb->add_flag("--detect-anomaly", train.detect_anomaly,
                 "name the operator whose gradient is not a number, and its line");
  addThreads(*verb, options, "threads within an operator");
  addOptimize(*verb, options);
  addLimits(*verb, options);
}

void addEvaluate(CLI::App* verb, Options& options) {
  TrainOptions& train = options.train;
  verb->add_option("--data", train.data, kDataHelp)->required()->expected(1, 64);
  verb->add_option(
      "--labels", train.target,
      "name of the labels among these tensors (y, target, targets, label or labels), or a "
      ".npy file of them");
  verb->add_option(
      "--loss", train.loss,
      "also the mean of a loss: cross_entropy, nll, mse, l1, smooth_l1, bce, "
      "bce_with_logits, or a script (.py) with a function of the output and the labels");
  verb->add_option("--loss-function", options.loss_function,
                   "function of the script of --loss (main)");
  verb->add_option("--batch-size", train.batch_size, "samples of a call (32)")
      ->check(CLI::Range(1, 1000000000));
  verb->add_option("--method", options.method, "method of the archive's module (forward)");
  verb->add_option("--function", options.function, "function of the script (main)");
  addPrepare(*verb, options);
  addDevice(*verb, options);
  addTf32(*verb, options);
  addAutocast(*verb, options);
  verb->add_flag("--fallback", options.fallback,
                 "compute operators that the device lacks on the CPU, and say which at the end");
  addDType(*verb, options, "convert floating parameters, buffers and data: f16, bf16, f32 or f64");
  addThreads(*verb, options, "threads within an operator");
  addOptimize(*verb, options);
  verb->add_option("--seed", options.seed, "where random numbers begin");
  verb->add_flag("--json", options.json, "print one JSON object");
}

void addPipeline(CLI::App& app, Options& options, const char* either) {
  PipelineOptions& pipeline = options.pipeline;
  CLI::App* verb = app.add_subcommand(
      "pipeline", "run a model as stages on threads of their own, with many items under way");
  verb->add_option("file", options.file, either)->required();
  verb->callback([&options] { options.verb = pipelineVerb; });
  verb->add_option("--stages", pipeline.stages,
                   "how many, or auto: as many stages and copies as there are processors (auto)");
  verb->add_option("--replicas", pipeline.replicas,
                   "copies that a stage may have (1; with auto any number)")
      ->check(CLI::Range(1, 4096));
  verb->add_option("--plan", pipeline.plan,
                   "JSON: the stages; read when the file is there, otherwise made and written");
  verb->add_option("--overrides", pipeline.overrides, "JSON: how layers become filters");
  verb->add_option("--simulate", pipeline.cluster,
                   "JSON: machines and links; predicts what 2 to 1,024 threads of them would do");
  verb->add_option("--run", pipeline.data,
                   "items: rows of a tensor (.npy, .pt), or a list in a .pt file, each an argument "
                   "or a tuple of arguments");
  verb->add_option(
      "--keep", pipeline.keep,
      "write each result to this file as it comes; a run goes on behind those that are "
      "there");
  verb->add_option("--stream", pipeline.stream,
                   "write the stream graph: .txt, .dot or .svg; - prints it");
  verb->add_option("--picture", pipeline.picture, "write a picture of the plan: .dot or .svg");
  verb->add_option("--items", pipeline.items,
                   "how often --input is run (as often as fits into --duration)")
      ->check(CLI::Range(1, 1000000000));
  verb->add_option("--duration", options.duration, "seconds to run --input again and again (2)")
      ->check(numberIn(0.001, 1e6));
  verb->add_option("--in-flight", pipeline.in_flight,
                   "items that may be under way (as many as queues and stages hold)")
      ->check(CLI::Range(1, 1000000000));
  verb->add_option("--queue", pipeline.queue, "items that wait between two threads (4)")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_flag("--merge", pipeline.merge,
                 "make convolutions along the last dimension one where that is cheaper; results "
                 "differ by rounding");
  verb->add_option("--chunk", pipeline.chunk,
                   "run the input as pieces of that many time steps, as sound without an end; "
                   "layers keep their windows")
      ->check(CLI::Range(1, 1 << 30));
  verb->add_option("--axis", pipeline.axis, "with --chunk: the dimension that is time (-1)")
      ->check(CLI::Range(-16, 16));
  verb->add_flag("--verify", pipeline.verify,
                 "compare each result with a call of the model; another is an error");
  verb->add_option("--method", options.method, "method of the archive's module (forward)");
  verb->add_option("--function", options.function, "function of the script (main)");
  verb->add_option("--output", options.output_file, "write the tuple of results to this .pt file");
  addThreads(*verb, options, "threads within an operator, of each stage (1)");
  verb->add_flag("--json", options.json, "print one JSON object");
  addDevice(*verb, options);
  addInputs(*verb, options);
  addMode(*verb, options);
  addOptimize(*verb, options);
  addLimits(*verb, options);
}

bool writesArchive(const Options& options) {
  return options.verb == saveVerb || options.verb == extractVerb || options.verb == trainVerb;
}

void checkTogether(const Options& options) {
  if (!options.method.empty() && !options.function.empty()) {
    throw CommandLineError("--method and --function exclude each other");
  }
  if (options.json && !options.output_file.empty() && options.verb != pipelineVerb) {
    throw CommandLineError("--json and --output exclude each other");
  }
  if (options.json && !options.expect.empty()) {
    throw CommandLineError("--json and --expect exclude each other");
  }
  if (!options.inputs_file.empty() && !options.inputs.empty()) {
    throw CommandLineError("--inputs and --input exclude each other");
  }
  const std::string& output = options.output_file;
  const auto ends = [&](std::string_view suffix) { return output.ends_with(suffix); };
  if (options.verb == convertVerb || options.verb == graphVerb) return;
  if (options.verb == saveVerb && ends(".pt2") && options.format != "pt") return;
  if (options.format == "pt2") {
    throw CommandLineError("--output: expected a name that ends in .pt2, got " + output);
  }
  if (writesArchive(options)) {
    if (!ends(".pt") && !ends(".pth")) {
      throw CommandLineError("--output: expected a name that ends in .pt, got " + output);
    }
    return;
  }
  if (!output.empty() && !ends(".pt") && !ends(".pth") && !ends(".npy")) {
    throw CommandLineError("--output: expected a name that ends in .pt or .npy, got " + output);
  }
}

// An unknown first word would be told as a missing one.
void checkFirstWord(const CLI::App& app, const std::string& word) {
  if (word.empty() || word[0] == '-') return;
  std::set<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.insert(verb->get_name());
  if (names.contains(word)) return;
  std::string message = "unknown command '" + word + "'";
  if (const std::string close = didYouMean(word, names); !close.empty()) {
    message += "," + close.substr(1);
  } else {
    message += "; there are";
    for (const std::string& name : names) message += (name == *names.begin() ? " " : ", ") + name;
  }
  throw CommandLineError(message + "\nSee torchscript-cli --help.");
}

void defineVerbs(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "help of every verb");
  app.set_version_flag("--version", fmt::format("torchscript-cli {}", version()));

  const auto verb = [&](void (*which)(const Options&), const char* name, const char* help,
                        const char* file_help) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->add_option("file", options.file, file_help)->required();
    sub->callback([&options, which] { options.verb = which; });
    addLimits(*sub, options);
    return sub;
  };
  const char* either = "model.pt or script.py; - for standard input";
  CLI::App* run = verb(runVerb, "run", "run a method or function and show its result", either);
  addPrepare(*run, options);
  addInputFlags(*run, options);
  run->add_flag("--detect-anomaly", options.detect_anomaly,
                "with gradients, and an error at the first operator whose gradient is NaN, which "
                "names the line of its call");
  run->add_option("--output", options.output_file, "write the result to this .pt or .npy file");
  run->add_option(
      "--expect", options.expect,
      "compare the result with the one in this file (.pt of torch.save, or .npy), and tell "
      "how they differ instead of showing it; exit code 1 when they do");
  addTolerances(*run, options);
  run->add_flag("--memory", options.memory, "report the peak of memory on standard error");
  run->add_flag("--json", options.json, "print the result as JSON, with all elements of tensors");

  verb(checkVerb, "check",
       "compile everything in a script or archive, and compare an archive's records with their CRC",
       either);

  addGraph(verb(graphVerb, "graph", "print the IR of a method or function, or draw it", either),
           options);

  CLI::App* code = verb(codeVerb, "code", "print the source of a method or function", either);
  code->add_option("--method", options.method, "method of the archive's module (all)");
  code->add_option("--function", options.function, "function of the script (all)");

  CLI::App* info = verb(infoVerb, "info", "list methods, parameters and sizes", either);
  info->add_flag("--json", options.json, "print one JSON object");

  addBench(verb(benchVerb, "bench",
                "time repeated calls, of a module in evaluation mode as an application prepares it "
                "for inference",
                either),
           options);

  addBuild(verb(buildVerb, "build", "compile a method or function ahead of time, as C++", either),
           options);

  CLI::App* missing = app.add_subcommand(
      "missing", "list the operators and constructs that programs need and Wick lacks");
  missing->add_option("paths", options.paths, "archives, scripts, and folders of them")->required();
  missing->add_flag("--json", options.json, "print one JSON object");
  addLimits(*missing, options);
  missing->callback([&options] { options.verb = missingVerb; });

  addProfile(verb(profileVerb, "profile", "time each operator, by module and line", either),
             options);

  CLI::App* bisect =
      verb(bisectVerb, "bisect", "find the first optimization that changes a result", either);
  addInputFlags(*bisect, options);
  bisect
      ->add_option("--tolerance", options.tolerance,
                   "numbers count as equal up to this share of the expected one (0)")
      ->check(numberIn(0.0, 1.0));

  addTrain(app, options);
  CLI::App* evaluate =
      verb(evaluateVerb, "evaluate",
           "tell how often a model is right over samples with labels, and its loss", either);
  addEvaluate(evaluate, options);
  addPipeline(app, options, either);
  addFileVerbs(verb, options, either);

  CLI::App* completions =
      app.add_subcommand("completions", "print the completions of commands for a shell");
  completions->add_option("shell", options.shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completions->add_option(
      "--of", options.file,
      "print the names of this file's methods or functions instead, one a line");
  completions->callback([&options] { options.verb = completionsVerb; });
  app.add_subcommand("devices", "list the devices that programs can run on")->callback([&options] {
    options.verb = devicesVerb;
  });
  CLI::App* worker = app.add_subcommand(
      "worker", "take a command a line as a JSON array of words, and answer with a line");
  worker->footer(
      "Standard input: a line for each command, the words behind torchscript-cli:\n"
      "  [\"run\", \"model.pt\", \"--input\", \"1x3xf32\", \"--json\"]\n"
      "Standard output: a line for each, in the same order, a JSON object:\n"
      "  {\"exit\": 0, \"stdout\": \"...\", \"stderr\": \"...\"}\n"
      "\"exit\" is the code that the command would end with (0 done, 1 refused or raised, 2 wrong\n"
      "usage), the others are the texts that it would print; with --json \"stdout\" is itself "
      "JSON.\n"
      "Models and compiled code stay loaded between lines. The worker ends with its input.");
  worker->callback([&options] { options.verb = workerVerb; });
}

// The first word that looks like a flag and is none of the verb's, as it was written; or "".
std::string unknownFlag(const CLI::App& verb, int argc, const char* const* argv,
                        std::set<std::string>& flags) {
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.insert("--" + name);
  }
  for (int i = 2; i < argc; ++i) {
    const std::string word(argv[i]);
    if (word == "--") break;
    const std::string flag = word.substr(0, word.find('='));
    if (flag.starts_with("--") && !flags.contains(flag)) return flag;
  }
  return "";
}

// Flags that a verb lacks because it does so anyway, or under another name.
struct AbsentFlag {
  const char* verb;
  const char* flag;
  const char* advice;
};
constexpr AbsentFlag kAbsentFlags[] = {
    {"bench", "--prepare",
     "it prepares a module in evaluation mode always, and --no-prepare leaves that out"},
    {"evaluate", "--target", "--labels names the labels"},
};

std::string adviceForFlag(const std::string& verb, const std::string& flag,
                          const std::set<std::string>& flags) {
  for (const AbsentFlag& absent : kAbsentFlags) {
    if (verb == absent.verb && flag == absent.flag) return std::string("; ") + absent.advice;
  }
  return didYouMean(flag, flags);
}

// What is wrong with a command line, in the words of whoever wrote it.
std::string complaintOf(const CLI::App& app, int argc, const char* const* argv,
                        const CLI::Error& error) {
  std::string message = error.what(), help = "--help";
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (argc < 2 || verb->get_name() != argv[1]) continue;
    help = verb->get_name() + " --help";
    std::set<std::string> flags;
    if (const std::string flag = unknownFlag(*verb, argc, argv, flags); !flag.empty()) {
      message = fmt::format("{} has no flag {}{}", verb->get_name(), flag,
                            adviceForFlag(verb->get_name(), flag, flags));
    } else if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
      std::vector<std::string> rest = verb->remaining();
      message = fmt::format("not expected: {}", fmt::join(rest, " "));
    }
  }
  return message + "\nSee torchscript-cli " + help + ".";
}

constexpr const char* kAbout = "Runs, checks and shows TorchScript programs and archives.";

}  // namespace

Options parseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(kAbout, "torchscript-cli");
  defineVerbs(app, options);
  if (argc > 1) checkFirstWord(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // help
    std::ostringstream text;
    std::ostringstream errors;
    app.exit(e, text, errors);
    throw HelpRequested{text.str()};
  } catch (const CLI::Error& e) {
    throw CommandLineError(complaintOf(app, argc, argv, e));
  }
  checkTogether(options);
  return options;
}

std::vector<VerbWords> listVerbs() {
  Options options;
  CLI::App app(kAbout, "torchscript-cli");
  defineVerbs(app, options);
  std::vector<VerbWords> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    VerbWords words{verb->get_name(), verb->get_description(), {}};
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        words.flags.emplace_back("--" + name, option->get_description());
      }
    }
    verbs.push_back(std::move(words));
  }
  return verbs;
}

}  // namespace wick::cli
