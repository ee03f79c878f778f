// Logging for those who debug the compiler: off unless asked for, chosen file by file.
//
// The environment variable WICK_LOG names source files without directory and suffix, separated by
// colons: WICK_LOG=dead_code_elimination:inline_calls. A '>' before a name adds the debug level.
// `*` is every file. Lines go to standard error, or to setLogHandler()'s function (core/messages.h), and begin with [LEVEL file.cpp:line].
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/messages.h"

namespace wick {

enum class LogLevel : uint8_t {
  Dump,    // whole graphs after a pass
  Update,  // one transformation of a graph
  Debug,   // what an analysis or pass thinks meanwhile
};

// A source path as the variables name it: "passes/inline_calls.cpp" is "inline_calls".
std::string_view logName(std::string_view path);

namespace detail {
extern std::atomic<bool> logging;  // some file is logged
bool isLogged(std::string_view path, LogLevel level);
void writeLog(std::string_view path, int line, LogLevel level, const std::string& text);
}  // namespace detail

}  // namespace wick

// Arguments are evaluated only when the file is logged at that level.
#define WICK_LOG_AT(level, ...)                                                      \
  do {                                                                               \
    if (::wick::detail::logging.load(std::memory_order_relaxed) &&                   \
        ::wick::detail::isLogged(__FILE__, level)) {                                 \
      ::wick::detail::writeLog(__FILE__, __LINE__, level, fmt::format(__VA_ARGS__)); \
    }                                                                                \
  } while (false)

// GRAPH_DUMP("after inlining", graph): anything with str() or text that fmt formats.
#define GRAPH_DUMP(message, graph) \
  WICK_LOG_AT(::wick::LogLevel::Dump, "{}\n{}", message, (graph).str())
#define GRAPH_UPDATE(...) WICK_LOG_AT(::wick::LogLevel::Update, __VA_ARGS__)
#define GRAPH_DEBUG(...) WICK_LOG_AT(::wick::LogLevel::Debug, __VA_ARGS__)
