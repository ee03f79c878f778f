// Archives are compared by what they mean: the source that their graphs print as, class by class
// and function by function, and the values of attributes by name. Other files by their tensors.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "serialization/export.h"
#include "tools/comparison.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

// What differs, one line each.
using Lines = std::vector<std::string>;

// One thing by its name; objects are compared by their parts, and their classes as code.
void compareValues(const std::string& name, const IValue& a, const IValue& b,
                   const Tolerance& tolerance, Lines& lines) {
  if (a.isObject() && b.isObject()) return;
  std::ranges::move(differences(a, b, tolerance, name), std::back_inserter(lines));
}

template <class T, class F>
void compareMaps(const std::map<std::string, T>& a, const std::map<std::string, T>& b,
                 const Options& options, const F& compare, Lines& lines) {
  for (const auto& [name, value] : a) {
    auto it = b.find(name);
    if (it == b.end()) {
      lines.push_back(fmt::format("{}: only in {}", name, options.file));
    } else {
      compare(name, value, it->second);
    }
  }
  for (const auto& [name, value] : b) {
    if (!a.contains(name))
      lines.push_back(fmt::format("{}: only in {}", name, options.second_file));
  }
}

// The text of each class head, method and function.
std::map<std::string, std::string> pieces(const Module& module) {
  SaveOptions save;
  save.for_pytorch = false;
  const ModuleArchive archive(module, save);
  std::map<std::string, std::string> found;
  for (const auto& [name, text] : archive.code()) {
    std::string in_class, current;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      const std::string_view line = std::string_view(text).substr(at, end - at);
      const size_t indent = line.find_first_not_of(' ');
      const auto word = [&](size_t from) {
        return std::string(line.substr(from, line.find_first_of("(:", from) - from));
      };
      if (line.starts_with("class ")) {
        in_class = name + "." + word(6);
        current = "class " + in_class;
      } else if (line.starts_with("def ")) {
        current = "function " + name + "." + word(4);
      } else if (indent == 2 && line.substr(2).starts_with("def ") &&
                 current.find("function ") != 0) {
        current = "method " + in_class + "." + word(6);
      }
      found[current] += line;
      at = end;
    }
  }
  return found;
}

// The lines with names of classes as their authors know them. Several classes of one name share a line then.
Lines withReadableNames(const Lines& lines) {
  Lines readable;
  std::map<std::string, size_t> counts;
  for (const std::string& line : lines) {
    // "method __torch__.m.___torch_mangle_3.Net.forward: the code differs"
    const size_t name = line.find(' ') + 1;
    std::string text = line.substr(0, name) + readableClassName(line.substr(name));
    if (counts[text]++ == 0) readable.push_back(std::move(text));
  }
  for (std::string& line : readable) {
    if (const size_t n = counts[line]; n > 1) line += fmt::format(" ({} classes of this name)", n);
  }
  return readable;
}

std::map<std::string, IValue> attributes(const Module& module) {
  std::map<std::string, IValue> found;
  for (const auto& [name, value] : module.attributes()) found.emplace("attribute " + name, value);
  return found;
}

void compareModules(const LoadedFile& a, const LoadedFile& b, const Options& options,
                    Lines& lines) {
  if (a.module().type()->name() != b.module().type()->name()) {
    lines.push_back("the modules are of the classes " +
                    namesOfBoth(a.module().type()->name(), b.module().type()->name()));
  }
  Lines code;
  compareMaps(
      pieces(a.module()), pieces(b.module()), options,
      [&](const std::string& name, const std::string& x, const std::string& y) {
        if (x != y) code.push_back(name + ": the code differs");
      },
      code);
  std::ranges::move(withReadableNames(code), std::back_inserter(lines));
  const auto values = [&](const std::string& name, const IValue& x, const IValue& y) {
    compareValues(name, x, y, toleranceOf(options), lines);
  };
  compareMaps(attributes(a.module()), attributes(b.module()), options, values, lines);
}

std::map<std::string, Tensor> byName(const NamedTensors& tensors) {
  std::map<std::string, Tensor> found;
  // A file of one tensor without a name gives it this one.
  for (const auto& [name, tensor] : tensors) {
    found.emplace(name == "tensor" ? name : "tensor " + name, tensor);
  }
  return found;
}

}  // namespace

void diffVerb(const Options& options) {
  Lines lines;
  if (isArchiveOfModule(options.file) && isArchiveOfModule(options.second_file)) {
    compareModules(LoadedFile::load(options.file), LoadedFile::load(options.second_file), options,
                   lines);
  } else {
    const auto values = [&](const std::string& name, const Tensor& x, const Tensor& y) {
      compareValues(name, IValue(x), IValue(y), toleranceOf(options), lines);
    };
    compareMaps(byName(tensorsOf(options.file)), byName(tensorsOf(options.second_file)), options,
                values, lines);
  }
  if (lines.empty()) return;
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  print(text);
  throw UsageError(fmt::format("{} and {} differ in {} {}", options.file, options.second_file,
                               lines.size(), lines.size() == 1 ? "thing" : "things"));
}

}  // namespace wick::cli
