// torchscript-cli. Exit codes: 0 done; 1 the file or its program was refused or raised, with the
// reason on standard error; 2 wrong usage.
#include "tools/command.h"

int main(int argc, char** argv) {
  return wick::cli::runCommand(argc, argv);
}
