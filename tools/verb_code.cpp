#include "serialization/python_printer.h"
#include "tools/verbs.h"

namespace wick::cli {

void codeVerb(const Options& options) {
  const Program program = Program::load(options.file);
  PythonPrinter printer;
  for (GraphFunction* function : program.functions(options)) {
    function->ensureDefined();
    printer.printFunction(*function, /*self_type=*/false);
  }
  print(printer.text());
}

}  // namespace wick::cli
