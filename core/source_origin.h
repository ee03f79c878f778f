// Where printed source came from, for messages.
//
// The source in archives was printed from graphs; beside it may stand from which positions of the
// user's own program (serialization/source_origins.h). What reads archives says here how to ask for
// these.
#pragma once

#include <string_view>

#include "core/source_range.h"

namespace wick {

// The position in the user's program, or the range itself where nothing is known. Never throws.
// Thread-safe.
SourceRange userRange(const SourceRange& range) noexcept;

// The names of sources that no user wrote begin so: formulas of derivatives, scripts that compute an
// operator while it is recorded for gradients, builtin functions.
inline constexpr std::string_view kGradientSource = "<gradient of ";
inline constexpr std::string_view kForwardSource = "<forward of ";
inline constexpr std::string_view kBuiltinSource = "<builtin ";
// Whether the position is in one of these.
bool isInEngine(const SourceRange& range);
// Whether it is in a script that stands for one operator of the user's program, whose errors are that
// operator's.
bool isInForward(const SourceRange& range);

// Set once, before main(). The function may throw, and is then not believed.
void setUserRange(SourceRange (*find)(const SourceRange& range));

}  // namespace wick
