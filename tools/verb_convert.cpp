#include "serialization/tensor_files.h"
#include "tools/verbs.h"

namespace wick::cli {

void convertVerb(const Options& options) {
  if (!isTensorFileName(options.output_file)) {
    throw CommandLineError(
        "convert: expected an output that ends in .pt, .safetensors, .npz or .npy, got " +
        options.output_file);
  }
  saveTensors(tensorsOf(options.file), options.output_file);
}

}  // namespace wick::cli
