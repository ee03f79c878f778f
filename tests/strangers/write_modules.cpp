// Writes random modules for with_pytorch.py:
//   write_modules FOLDER FIRST COUNT
// For each seed it writes archives: SEED.plain.pt, or SEED.leaf.pt for a module that makes leaves; SEED.frozen.pt and
// SEED.optimized.pt for one in evaluation mode without leaves. SEED.values.pt, of torch.save, holds the inputs, the results of
// plain calls, and whether one of them raised; SEED.txt holds the source. A module that PyTorch does not compile is left out.
#include <fmt/format.h>

#include <exception>
#include <fstream>

#include "tests/strangers/outcome.h"

namespace wick::strangers {
namespace {

IValue listOf(const std::vector<Tensor>& tensors) {
  return IValue(makeList(types::Tensor(), {tensors.begin(), tensors.end()}));
}

void write(const std::string& folder, uint64_t seed) {
  const RandomModule made = randomModule(seed);
  if (made.beyond_pytorch) return;
  const std::string name = fmt::format("{}/{}", folder, seed);
  // PyTorch's scripts share leaves that programs make of constants; its eager mode does not.
  made.module.save(name + (made.leaf ? ".leaf.pt" : ".plain.pt"));
  if (!made.trains && !made.leaf) {
    freeze(randomModule(seed).module).save(name + ".frozen.pt");
    FreezeOptions options;
    options.optimize = true;
    freeze(randomModule(seed).module, options).save(name + ".optimized.pt");
  }
  std::ofstream(name + ".txt") << made.source;
  const Outcome want = plainOutcomeOf(randomModule(seed));
  saveValue(makeTuple({listOf(made.inputs), listOf(want.results), IValue(want.raised)}),
            name + ".values.pt");
}

int run(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: write_modules FOLDER FIRST COUNT\n");
    return 2;
  }
  const uint64_t first = std::stoull(argv[2]), count = std::stoull(argv[3]);
  for (uint64_t seed = first; seed < first + count; ++seed) write(argv[1], seed);
  return 0;
}

}  // namespace
}  // namespace wick::strangers

int main(int argc, char** argv) {
  try {
    return wick::strangers::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "write_modules: {}\n", error.what());
    return 1;
  }
}
