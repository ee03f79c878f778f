// Environment variables that switch something on or off.
#pragma once

namespace wick {

// Whether the variable says "on"; `otherwise` where it is not set. UsageError unless it is "on" or "off".
bool isSwitchedOn(const char* variable, bool otherwise);

}  // namespace wick
