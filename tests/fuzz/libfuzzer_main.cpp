// The entry of libFuzzer for one target: WICK_FUZZ_TARGET, which WICK_FUZZ_HEADER declares
// (libfuzzer.bzl). What a test would report ends the process, so that libFuzzer keeps the input.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include WICK_FUZZ_HEADER
#include "core/tensor.h"
#include "tests/fuzz/answer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wick::setAllocationLimit(size_t{64} << 20);
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string failure = wick::failureOf(input, wick::WICK_FUZZ_TARGET);
  if (!failure.empty()) {
    std::fprintf(stderr, "%s\n", failure.c_str());
    std::abort();
  }
  return 0;
}
