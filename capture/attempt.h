// Captures a frame that starts.
#pragma once

#include <memory>

#include "capture/bytecode/frame.h"
#include "capture/entry.h"
#include "capture/world.h"

namespace wick::capture {

// Returns an entry for the frame as it is now, which has not been touched. An entry that could not
// be made runs plainly, and says why. Notes the sizes of inputs in the history. Throws PythonError
// for interrupts, and where Python has no memory.
std::unique_ptr<Entry> captureFrame(const World& world, FrameView frame, OpenSizes mode,
                                    SizeHistory& history);

// Returns whether a capture of the frame with these open sizes would give the same entry.
bool isSameForSizes(const World& world, FrameView frame, const Entry& entry,
                    const std::vector<int64_t>& sizes);

}  // namespace wick::capture
