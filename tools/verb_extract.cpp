#include "core/output_file.h"
#include "serialization/export.h"
#include "tools/verbs.h"

namespace wick::cli {

void extractVerb(const Options& options) {
  { const OutputFile probe(options.output_file); }
  const LoadedFile program = LoadedFile::load(options.file);
  if (!program.isArchive()) throw CommandLineError("extract: a script has no submodules");
  saveModule(program.module().submodule(options.submodule), options.output_file);
}

}  // namespace wick::cli
