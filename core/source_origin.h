// Where printed source came from, for messages.
//
// The source in archives was printed from graphs; beside it may stand from which positions of the
// user's own program (serialization/source_origins.h). What reads archives says here how to ask for
// these.
#pragma once

#include "core/source_range.h"

namespace wick {

// The position in the user's program, or the range itself where nothing is known. Never throws.
// Thread-safe.
SourceRange userRange(const SourceRange& range) noexcept;

// Set once, before main(). The function may throw, and is then not believed.
void setUserRange(SourceRange (*find)(const SourceRange& range));

}  // namespace wick
