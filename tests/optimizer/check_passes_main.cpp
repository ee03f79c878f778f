// Checks that passes change no result, on random graphs:
//   bazel run -c opt //tests/optimizer:check_passes -- [COUNT [FIRST_SEED]]
// Prints the seeds that fail with their graphs; the exit code is 1 when there are any.
#include "tests/optimizer/check_passes.h"
#include "tests/optimizer/seeds_main.h"

int main(int argc, char** argv) {
  return wick::checkSeeds(argc, argv, wick::checkSeed);
}
