// Lines of text, indented as deep as the blocks that are open.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace wick::codegen {

class Lines {
 protected:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * static_cast<size_t>(depth_), ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void open(const std::string& head) {
    line("{} {{", head);
    ++depth_;
  }
  void close(const char* behind = "") {
    --depth_;
    line("}}{}", behind);
  }

  std::string text_;
  int depth_ = 1;  // of a function's body
};

}  // namespace wick::codegen
