// Kernels of the loop IR as C++17 functions, for one size of each dimension and one way over memory.
//
// The function has a pointer for each access that reads or writes memory, in their order. Sums are
// added in the order of codegen/loop/lane_order.h, so that compiled code gives the bits of the
// engine's own for registers of `vector_bits`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/cpp/scalar_text.h"
#include "codegen/loop/kernel.h"

namespace wick::codegen {

// How a kernel walks over its domain (runtime/fusion/walk.h, where it is planned). Steps are in bytes,
// one an access; those of positions of points count points.
struct CppLoop {
  int64_t size;
  std::vector<int64_t> steps;
};
struct CppWalk {
  CppLoop row;                  // the elements of a row, or of a piece of one
  std::vector<CppLoop> pieces;  // loops over the pieces of a row, the innermost first
  std::vector<CppLoop> outer;   // the dimensions outside of rows, the innermost first
  bool across_rows = false;     // lanes are neighbouring rows, along outer[0]
  bool tiled = false;           // rows along outer[0] are walked in blocks
  bool parallel = false;        // whether several threads pay
  // Whether sizes and steps in the text are to be replaced: then the text has one form for all sizes of its
  // loops, rather than the shortest for these.
  bool any_size = false;
};

// The definition of a static function `name`; of type bool when the kernel has checks: whether they
// held. `numbers` are the bits of the kernel's numbers. Throws NoCppText.
std::string cppKernelText(const std::string& name, const loop::Kernel& kernel, const CppWalk& walk,
                          const std::vector<uint64_t>& numbers, unsigned vector_bits);

}  // namespace wick::codegen
