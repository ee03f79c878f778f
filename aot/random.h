// Random numbers: drawn by the compiled model, from a generator that its state has.
#pragma once

#include "aot/program.h"

namespace wick {
class Block;
}

namespace wick::aot {

// Whether the function takes the state's generator in front of its operands (wick_aot_random.h). Such a step runs
// even when nobody needs its numbers, because those of the next one follow them.
bool drawsNumbers(const FunctionStep& step);

// Whether the graph draws random numbers, or says where they begin.
bool drawsNumbers(const Block* block);

// Puts operators that note their draws in place of those that would draw while the model is built, because no tensor tells
// them otherwise. NotAhead for others of those.
void drawAhead(Block* block);

}  // namespace wick::aot
