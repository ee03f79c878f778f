#include "core/log.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace wick {

namespace {

struct LogState {
  std::mutex mutex;
  std::unordered_map<std::string, LogLevel> files;  // the highest level that is written
  LogHandler handler;
};

LogState& state() {
  static LogState* instance = new LogState();  // outlives static objects that log
  return *instance;
}

constexpr std::string_view kLevelNames[] = {"DUMP", "UPDATE", "DEBUG"};

const bool from_environment = [] {
  if (const char* files = std::getenv("WICK_LOG")) setLogFiles(files);
  return true;
}();

}  // namespace

namespace detail {

std::atomic<bool> logging{false};

bool isLogged(std::string_view path, LogLevel level) {
  LogState& s = state();
  std::lock_guard lock(s.mutex);
  auto it = s.files.find(std::string(logName(path)));
  if (it == s.files.end()) it = s.files.find("*");
  return it != s.files.end() && level <= it->second;
}

void writeLog(std::string_view path, int line, LogLevel level, const std::string& text) {
  std::string out = fmt::format("[{} {}:{}] {}", kLevelNames[static_cast<int>(level)],
                                path.substr(path.rfind('/') + 1), line, text);
  if (out.back() != '\n') out += '\n';
  LogState& s = state();
  std::lock_guard lock(s.mutex);
  if (s.handler) {
    s.handler(out);
  } else {
    std::fwrite(out.data(), 1, out.size(), stderr);
  }
}

}  // namespace detail

void setLogFiles(std::string_view files) {
  LogState& s = state();
  std::lock_guard lock(s.mutex);
  s.files.clear();
  while (!files.empty()) {
    size_t end = files.find(':');
    std::string_view name = files.substr(0, end);
    files.remove_prefix(end == std::string_view::npos ? files.size() : end + 1);
    LogLevel level = LogLevel::Update;
    while (name.starts_with('>')) {
      level = LogLevel::Debug;
      name.remove_prefix(1);
    }
    if (!name.empty()) s.files[std::string(logName(name))] = level;
  }
  detail::logging.store(!s.files.empty(), std::memory_order_relaxed);
}

void setLogHandler(LogHandler handler) {
  LogState& s = state();
  std::lock_guard lock(s.mutex);
  s.handler = std::move(handler);
}

std::string_view logName(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.rfind('.'));
}

}  // namespace wick
