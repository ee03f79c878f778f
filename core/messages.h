// Warnings and logs: texts of the engine beside results. Both go to the standard error unless
// an application takes them. All functions here are thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace wick {

// Takes the texts that programs give to warnings.warn(), without "Warning: ". It may be called from
// several threads at a time. An error that it throws ends the run. Null: they are written to the
// standard error again. A handler that is just being called may end later.
using WarningHandler = std::function<void(const std::string& message)>;
void setWarningHandler(WarningHandler handler);
void warn(const std::string& message);

// Replaces what the environment variable WICK_LOG said, in its syntax (docs/environment.md); empty
// turns logging off.
void setLogFiles(std::string_view files);
// Takes the lines of the log, each with its end of line. Calls are serialized; it must neither log nor
// throw. Null: they are written to the standard error again.
using LogHandler = std::function<void(std::string_view line)>;
void setLogHandler(LogHandler handler);

}  // namespace wick

#pragma GCC visibility pop
