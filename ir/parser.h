// Reads the text form of the IR back.
#pragma once

#include <memory>
#include <string_view>

#include "ir/graph.h"

namespace wick {

// Types of the text that name classes are looked up with `resolve` (may be null: no classes).
// Throws CompileError at the place of the mistake. Tensor constants must be printed in full.
std::shared_ptr<Graph> parseGraph(
    std::string_view text, const std::function<TypePtr(const std::string&)>& resolve = nullptr);

}  // namespace wick
