#include "codegen/llvm/vector_limit.h"

#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace wick::codegen {

namespace {

unsigned parse(const char* text) {
  const std::string_view bits = text ? text : "512";
  if (bits == "128") return 128;
  if (bits == "256") return 256;
  if (bits == "512") return 512;
  throwRuntimeError("WICK_VECTOR_BITS: expected '128', '256' or '512', got '{}'", bits);
}

}  // namespace

unsigned vectorBitsLimit() {
  static const unsigned bits = parse(std::getenv("WICK_VECTOR_BITS"));
  return bits;
}

}  // namespace wick::codegen
