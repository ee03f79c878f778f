// Convolutional networks that train keep their images with the channels innermost.
#pragma once

#include <cstddef>

#include "ir/graph.h"

namespace wick {

// Convolutions compute on images whose channels lie side by side, and give such results for such
// inputs. Puts wick::training_layout in front of aten::conv2d wherever nobody can notice the
// strides of the result: all that is computed from it, up to numbers, row-major tensors and sizes,
// must be known operators, and none of these returns it, keeps it or views it. While gradients are
// recorded that operator lays out its input so, and otherwise it gives the input itself. The
// statistics of normalization may then differ in the last bits. Returns how many convolutions got
// one. Linear in the size of the graph.
size_t layOutForTraining(Graph& graph);

}  // namespace wick
