#include <fmt/format.h>

#include "tools/verbs.h"

namespace wick::cli {

void checkVerb(const Options& options) {
  const LoadedFile program = LoadedFile::loadVerified(options.file);
  // Loading compiles everything; what a function declares may still have to be looked at.
  for (const auto& function : program.unit().functions()) function->ensureDefined();
  print(fmt::format("{}: {} functions, no errors\n", options.file,
                    program.unit().functions().size()));
}

}  // namespace wick::cli
