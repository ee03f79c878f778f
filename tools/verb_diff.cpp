// Archives are compared by what they mean: the source that their graphs print as, class by class
// and function by function, and the values of attributes by name. Other files by their tensors.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "serialization/export.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

// What differs, one line each.
using Lines = std::vector<std::string>;

// The largest difference of two tensors of one shape and dtype, as far as numbers say it.
double largestDifference(const Tensor& a, const Tensor& b, double& scale) {
  const Tensor x = a.to(DType::Double).contiguous(), y = b.to(DType::Double).contiguous();
  double largest = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double p = x.data<double>()[i], q = y.data<double>()[i];
    if (p == q || (std::isnan(p) && std::isnan(q))) continue;
    const double d = std::abs(p - q);
    largest = std::isnan(d) ? HUGE_VAL : std::max(largest, d);
    scale = std::max({scale, std::abs(p), std::abs(q)});
  }
  return largest;
}

std::string compareTensors(const Tensor& a, const Tensor& b, double tolerance) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined() ? "" : "a tensor and none";
  if (a.describe() != b.describe()) return fmt::format("{} and {}", a.describe(), b.describe());
  if (IValue(a).equals(IValue(b))) return "";
  if (isComplex(a.dtype())) return "the numbers differ";
  double scale = 0;
  const double difference = largestDifference(a, b, scale);
  if (difference == 0 || difference <= tolerance * scale) return "";
  return fmt::format("the numbers differ by up to {:.3g}", difference);
}

std::string compareValues(const IValue& a, const IValue& b, double tolerance) {
  if (a.tag() != b.tag()) return fmt::format("{} and {}", a.tagName(), b.tagName());
  if (a.isTensor()) return compareTensors(a.toTensor(), b.toTensor(), tolerance);
  if (a.isObject()) return "";  // its parts are compared by name, and its class as code
  const std::string x = a.repr(), y = b.repr();
  return x == y ? "" : fmt::format("{} and {}", a.shortRepr(), b.shortRepr());
}

template <class T, class F>
void compareMaps(const std::map<std::string, T>& a, const std::map<std::string, T>& b,
                 const Options& options, const F& compare, Lines& lines) {
  for (const auto& [name, value] : a) {
    auto it = b.find(name);
    if (it == b.end()) {
      lines.push_back(fmt::format("{}: only in {}", name, options.file));
    } else if (const std::string how = compare(value, it->second); !how.empty()) {
      lines.push_back(fmt::format("{}: {}", name, how));
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

std::map<std::string, IValue> attributes(const Module& module) {
  std::map<std::string, IValue> found;
  for (const auto& [name, value] : module.attributes()) found.emplace("attribute " + name, value);
  return found;
}

void compareModules(const LoadedFile& a, const LoadedFile& b, const Options& options,
                    Lines& lines) {
  if (a.module().type()->name() != b.module().type()->name()) {
    lines.push_back(fmt::format("the modules are of the classes {} and {}",
                                a.module().type()->name(), b.module().type()->name()));
  }
  compareMaps(
      pieces(a.module()), pieces(b.module()), options,
      [](const std::string& x, const std::string& y) {
        return std::string(x == y ? "" : "the code differs");
      },
      lines);
  compareMaps(
      attributes(a.module()), attributes(b.module()), options,
      [&](const IValue& x, const IValue& y) { return compareValues(x, y, options.tolerance); },
      lines);
}

std::map<std::string, Tensor> byName(const NamedTensors& tensors) {
  std::map<std::string, Tensor> found;
  for (const auto& [name, tensor] : tensors) found.emplace("tensor " + name, tensor);
  return found;
}

}  // namespace

void diffVerb(const Options& options) {
  Lines lines;
  if (isArchiveOfModule(options.file) && isArchiveOfModule(options.second_file)) {
    compareModules(LoadedFile::load(options.file), LoadedFile::load(options.second_file), options,
                   lines);
  } else {
    compareMaps(
        byName(tensorsOf(options.file)), byName(tensorsOf(options.second_file)), options,
        [&](const Tensor& x, const Tensor& y) { return compareTensors(x, y, options.tolerance); },
        lines);
  }
  if (lines.empty()) return;
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  print(text);
  throwRuntimeError("{} and {} differ in {} {}", options.file, options.second_file, lines.size(),
                    lines.size() == 1 ? "thing" : "things");
}

}  // namespace wick::cli
