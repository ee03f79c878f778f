// Where the text of warnings.warn() goes.
#pragma once

#include <functional>
#include <string>

namespace wick {

// The default writes "Warning: …" to the standard error. Thread-safe; null restores the default.
void setWarningHandler(std::function<void(const std::string&)> handler);
void warn(const std::string& message);

}  // namespace wick
