#include "python/torch_random.h"

#include <span>

#include "core/generator_state.h"
#include "python/torch_memory.h"

namespace wick::python {
namespace {

using capture::Object;

// The bytes of a state of PyTorch's generator.
std::span<uint8_t> bytesOf(const TorchMemory& state) {
  return {static_cast<uint8_t*>(state.base.rawData()), static_cast<size_t>(state.base.numel())};
}

}  // namespace

TorchRandom::TorchRandom(const TorchLibrary& library)
    : library_(library),
      before_(TorchLibrary::call(library.get_rng_state)),
      own_(GeneratorState::of(defaultGenerator())) {
  const TorchMemory memory = memoryOf(library, before_.get(), {DType::Byte, {}, {}});
  GeneratorState::fromPyTorch(bytesOf(memory)).restore(defaultGenerator());
}

TorchRandom::~TorchRandom() {
  own_.restore(defaultGenerator());
}

void TorchRandom::putBack() {
  const TorchMemory memory = memoryOf(library_, before_.get(), {DType::Byte, {}, {}});
  if (GeneratorState::of(defaultGenerator()).toPyTorch(bytesOf(memory))) {
    TorchLibrary::call(library_.set_rng_state, before_.get());
  }
}

}  // namespace wick::python
