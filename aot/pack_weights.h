// Weights of the library's convolutions and products, packed while the model is built.
#pragma once

#include "aot/program.h"
#include "aot/runtime/wick_aot_onednn.h"

namespace wick::aot {

// The step as the runtime has it, but for where its weights lie.
wick_aot_primitive primitiveOf(const LibraryStep& step);

// Gives steps whose weight is constant one that lies as oneDNN wants it on this machine, so that a model uses the
// file of its weights where it is mapped: nothing is packed, and no memory taken, at its start. On a machine for which
// oneDNN wants another layout, the runtime packs anew. For programs of fixed sizes, because the layout may depend on
// them.
void packWeights(Program& program);

}  // namespace wick::aot
