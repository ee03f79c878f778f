// Writing files whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace wick {

// A file that appears under its name when it is complete: what is written goes to a file without a
// name in the same folder, which commit() brings to the disk and gives its name. Until then, and
// when the disk is full, the process is killed or commit() is never reached, a file of that name
// stays as it was, and nothing is left beside it. (Where the file system has only files with names,
// a process that is killed leaves a hidden file ".wick-….tmp".)
// Links are followed, and a file that is replaced keeps its permissions. What is no regular file (a
// pipe, a terminal) is written as it comes. Messages of errors name the path and the system's
// reason. Used by one thread.
class OutputFile {
 public:
  // Opens the new file: RuntimeError when the folder cannot be written.
  explicit OutputFile(std::string path);
  // Without commit(): removes what was written.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  void write(std::span<const std::byte> data);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Once, at the end.
  void commit();

 private:
  [[noreturn]] void fail(int error) const;
  void writeOut(std::span<const std::byte> data);
  void flush();
  void giveName();
  void abandon();

  std::string path_;       // as the caller named it
  std::string target_;     // behind links
  std::string temporary_;  // the name that the new file has until commit(); empty: none
  bool replaces_ = true;   // false: the target itself is written, which is no regular file
  int fd_ = -1;
  std::string buffer_;
  size_t unsynced_ = 0;
};

// A small file at once.
void writeFile(const std::string& path, std::string_view text);

}  // namespace wick
