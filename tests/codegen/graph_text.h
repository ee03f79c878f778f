// The text of a graph, line by line, with names of its own for what the lines define.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace wick {

class GraphText {
 public:
  // Each returns the name of what the new line defines.
  std::string constant(const std::string& type, const std::string& value) {
    return define("%c", type, fmt::format("prim::Constant[value={}]()", value));
  }
  std::string none() { return define("%c", "NoneType", "prim::Constant()"); }
  std::string list(const std::string& type, const std::vector<std::string>& elements) {
    return define("%l", type + "[]",
                  fmt::format("prim::ListConstruct({})", fmt::join(elements, ", ")));
  }
  std::string node(const std::string& op, const std::string& arguments) {
    return define("%v", "Tensor", fmt::format("aten::{}({})", op, arguments));
  }
  // Begins with `prefix`.
  std::string freshName(const char* prefix) { return fmt::format("{}{}", prefix, next_++); }
  void addLine(const std::string& line) { lines_ += fmt::format("  {}\n", line); }

  const std::string& lines() const { return lines_; }
  // Takes lines back: those that lines() began with at an earlier time stay.
  void restore(const std::string& lines) { lines_ = lines; }
  // The graph with these inputs ("%x : Tensor, …") and outputs ("%v1, …").
  std::string graph(const std::string& inputs, const std::string& outputs) const {
    return fmt::format("graph({}):\n{}  return ({})\n", inputs, lines_, outputs);
  }

 private:
  std::string define(const char* prefix, const std::string& type, const std::string& what) {
    std::string name = freshName(prefix);
    addLine(fmt::format("{} : {} = {}", name, type, what));
    return name;
  }

  std::string lines_;
  int next_ = 0;
};

}  // namespace wick
