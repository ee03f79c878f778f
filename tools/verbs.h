// The verbs of torchscript-cli, one file each. They print to standard output, and throw
// CommandLineError for wrong usage and Wick's errors for what the file or its program does wrong.
#pragma once

#include "serialization/named_tensors.h"
#include "tools/comparison.h"
#include "tools/inputs.h"
#include "tools/loaded_file.h"
#include "tools/options.h"

namespace wick::cli {

void runVerb(const Options& options);
void checkVerb(const Options& options);
void graphVerb(const Options& options);
void codeVerb(const Options& options);
void infoVerb(const Options& options);
void benchVerb(const Options& options);
void buildVerb(const Options& given);
void missingVerb(const Options& options);
void profileVerb(const Options& options);
void bisectVerb(const Options& options);
void saveVerb(const Options& options);
void convertVerb(const Options& options);
void diffVerb(const Options& options);
void evaluateVerb(const Options& options);
void extractVerb(const Options& options);
void trainVerb(const Options& options);
void pipelineVerb(const Options& options);
void completionsVerb(const Options& options);
void workerVerb(const Options& options);
void devicesVerb(const Options& options);

// Where --device puts the tensors of the archive, and devices that its code names: the CPU without.
// Other files are read to the CPU.
DeviceMap devicesOf(const Options& options);
// The arguments that --inputs or --input give to `function`.
Arguments argumentsFor(const Options& options, const LoadedFile& program, GraphFunction& function);
// Applies --seed, --threads, --grad, --device (where new tensors are), --fallback, --tf32 and --optimize.
void applySettings(const Options& options);
// Makes them what they are when the process begins.
void resetSettings();
// Of --dtype: "f16", "bf16", "f32" or "f64".
DType dtypeOf(const std::string& name);
// Of --tolerance, --atol and --rtol.
Tolerance toleranceOf(const Options& options);
// Whether the file is an archive of torch.jit.save, by its records.
bool isArchiveOfModule(const std::string& path);
// The tensors of such an archive's module (its state), or of a file of tensors.
NamedTensors tensorsOf(const std::string& path);
// Gives the archive's module the tensors of a file: a state of torch.save, .safetensors, .npz, or another archive.
// UsageError that names the file when they do not fit.
void loadWeights(const LoadedFile& program, const std::string& path);
// Applies --eval, or says on standard error that the module is in training mode. For verbs that
// run.
void applyMode(const Options& options, const LoadedFile& program);
// Applies --device: moves the module, as far as it is not there, and the arguments. To be called after applySettings().
void placeOnDevice(const Options& options, const LoadedFile& program, const Arguments& arguments);
// The function that is called; with --autocast one that does the same in mixed precision. CommandLineError
// for a module with hooks, which casts would not reach.
std::shared_ptr<GraphFunction> functionFor(const Options& options, const LoadedFile& program);
// With --prepare the method prepared for inference, else null. CommandLineError where it cannot be prepared.
std::shared_ptr<GraphFunction> preparedFor(const Options& options, const LoadedFile& program,
                                           GraphFunction& function);
// Brings a result of a call back to the CPU, so that it can be shown.
void fetchResult(const Options& options, const IValue& result);
// Says on standard error what --fallback computed on the CPU, if anything.
void tellFallbacks(const Options& options);
// Writes to standard output; RuntimeError when that fails (a full disk).
void print(const std::string& text);

}  // namespace wick::cli
