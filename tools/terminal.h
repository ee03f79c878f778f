// What whoever reads at a terminal sees: colours, and nothing that steers the terminal.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace wick::cli {

enum class Paint { Red, Yellow, Dim };

// Whether the stream is a terminal that shows colours. NO_COLOR (no-color.org) says no whatever the
// stream is, CLICOLOR_FORCE says yes, unless it is 0.
bool showsColors(FILE* stream);

// The text with its control characters, but for tabs and ends of lines, and bytes that are not UTF-8 as
// escapes ("\x1b"): names and messages of files may come from anyone, and terminals obey them.
std::string harmless(std::string_view text);

// The text as it is written to the stream: harmless where that is a terminal.
std::string shownOn(FILE* stream, std::string_view text);

// The text in that colour when the stream shows colours, else as it is. Its last newlines stay
// outside.
std::string paint(FILE* stream, Paint how, std::string_view text);

// A line on standard error that is written over a few times a second, and is gone when this is. Used by one thread.
class ProgressLine {
 public:
  // Whether there is a terminal to write to.
  static bool hasTerminal();
  explicit ProgressLine(bool shown) : shown_(shown) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // Shows what `text` makes, when it is time again.
  void show(const std::function<std::string()>& text);
  // Takes the line away, until the next one.
  void clear();

 private:
  const bool shown_;
  bool there_ = false;
  std::chrono::steady_clock::time_point next_{};
};

// A message of an error, as shownOn(): its first line stands out, and the carets below source lines.
std::string paintError(FILE* stream, std::string_view message);

}  // namespace wick::cli
