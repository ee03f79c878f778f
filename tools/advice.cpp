#include "tools/advice.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <string_view>

namespace wick::cli {
namespace {

bool isWordChar(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

// Calls take(line) for each, until it answers true.
template <class F>
void forEachLine(std::string_view text, F take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (take(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Whether "a.b as c" binds the name; `dotted`: without "as" the first part is bound.
bool binds(std::string_view clause, std::string_view name, bool dotted) {
  const size_t as = clause.find(" as ");
  if (as != std::string_view::npos) return trimmed(clause.substr(as + 4)) == name;
  clause = trimmed(clause);
  return (dotted ? clause.substr(0, clause.find('.')) : clause) == name;
}

// The module that a top-level import takes the name from.
std::optional<std::string> importOf(const std::string& source, std::string_view name) {
  std::optional<std::string> found;
  forEachLine(source, [&](std::string_view line) {
    std::string_view module;
    std::string_view names;
    if (line.starts_with("import ")) {
      names = line.substr(7);
    } else if (line.starts_with("from ")) {
      const size_t import = line.find(" import ");
      if (import == std::string_view::npos) return false;
      module = trimmed(line.substr(5, import - 5));
      names = line.substr(import + 8);
    }
    while (!names.empty() && !found) {
      const size_t comma = std::min(names.find(','), names.size());
      const std::string_view clause = names.substr(0, comma);
      if (binds(clause, name, module.empty())) {
        found = module.empty() ? trimmed(clause.substr(0, clause.find(" as "))) : module;
      }
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
    return found.has_value();
  });
  return found;
}

// The first class that derives from nn.Module, by its text.
std::string moduleClass(const std::string& source) {
  std::string found;
  forEachLine(source, [&](std::string_view line) {
    if (!line.starts_with("class ")) return false;
    const size_t open = line.find('(');
    const size_t close = line.find(')', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) return false;
    const std::string_view base = trimmed(line.substr(open + 1, close - open - 1));
    if (base != "Module" && !base.ends_with(".Module")) return false;
    found = trimmed(line.substr(6, open - 6));
    return true;
  });
  return found;
}

// The name in "undefined value NAME…".
std::string undefinedName(const std::string& brief) {
  constexpr std::string_view kBegin = "undefined value ";
  if (!brief.starts_with(kBegin)) return "";
  size_t end = kBegin.size();
  while (end < brief.size() && isWordChar(brief[end])) ++end;
  return brief.substr(kBegin.size(), end - kBegin.size());
}

}  // namespace

std::string adviceForModuleClass(const std::string& source) {
  const std::string module = moduleClass(source);
  if (module.empty()) return "";
  return fmt::format(
      "{} derives from nn.Module. Python makes modules, and Wick loads them: in Python write "
      "torch.jit.script({}()).save(\"model.pt\"), then run model.pt.",
      module, module);
}

std::string adviceForProgram(const CompileError& error, const std::string& source) {
  const std::string name = undefinedName(error.brief());
  if (std::string advice = adviceForModuleClass(source); !advice.empty()) return advice;
  if (name.empty()) return "";
  const std::optional<std::string> module = importOf(source, name);
  if (!module) return "";
  if (*module == "numpy" || module->starts_with("numpy.")) {
    return fmt::format(
        "'{}' is NumPy, which programs cannot call. torch has most of its functions, often under "
        "the "
        "same names: torch.sum, torch.arange.",
        name);
  }
  return fmt::format(
      "'{}' is imported from {}, but a script is compiled alone, with what torch, math and typing "
      "offer. Define what it needs in this file, or compile it in Python and give the archive: "
      "torch.jit.script(f).save(\"f.pt\").",
      name, *module);
}

}  // namespace wick::cli
