// Where runs of the calling thread call operators at the moment, for those who keep calls and have to
// name their places later.
#pragma once

#include <cstdint>

#include "core/source_range.h"
#include "runtime/interpreter/code.h"

namespace wick {

// From now on runs that begin note their calls, which costs some nanoseconds a call. Thread-safe.
void noteCallPlaces();
bool callPlacesAreNoted();

// A number for the innermost call that is under way on this thread, another one for each call; 0
// outside of all.
uint64_t currentCall();
// Its place in the program: of the innermost call that an author wrote. Formulas of derivatives and the
// functions that the engine has as script are passed over. Invalid where there is none.
SourceRange placeOfCurrentCall();

// A call by the interpreter, from construction to destruction.
class CallPlaceScope {
 public:
  CallPlaceScope(const Code& code, const Instruction& instruction);
  ~CallPlaceScope();
  CallPlaceScope(const CallPlaceScope&) = delete;
  CallPlaceScope& operator=(const CallPlaceScope&) = delete;

 private:
  friend uint64_t currentCall();
  friend SourceRange placeOfCurrentCall();
  const Code& code_;
  const Instruction& instruction_;
  const CallPlaceScope* const outer_;
  const uint64_t number_;
};

}  // namespace wick
