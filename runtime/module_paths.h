// Which module of a model a piece of a program belongs to: "layer1.0.conv1". Found from the calls
// that lead there, each of which is a call of a method on an attribute of the module before.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/error_types.h"
#include "ir/function.h"

namespace wick {

// Names for the frames of an error or of a node, innermost first as in RuntimeError: the path of
// the module behind whose dot the method stands, "layer1.0.conv1.forward". `outermost` is the
// function that was called. Frames whose module cannot be told keep their names.
std::vector<std::string> namesWithPaths(GraphFunction& outermost,
                                        std::span<const RuntimeError::Frame> frames);

// The path of the module that a node of `outermost`'s code belongs to; empty for the outermost
// module itself and where it cannot be told.
std::string modulePathOf(GraphFunction& outermost, const Node& node);
// The same for all nodes that were inlined by this call; the path of the outermost module for null.
std::string modulePathOf(GraphFunction& outermost, const InlinedCall* call);

// The same error with these names.
RuntimeError withModulePaths(const RuntimeError& error, GraphFunction& outermost);

}  // namespace wick
