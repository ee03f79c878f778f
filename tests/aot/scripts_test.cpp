// The scripts of tests/scripts that give numbers and tensors, compiled ahead of time: with the bits of
// the engine. Prints how many are, and a table of why the others are not.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "core/error_types.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick::scripts_test {
namespace {

using testing_aot::Running;
using testing_aot::Workshop;

const char kRoot[] = "tests/scripts/cases";

std::string textOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream buffer;
  buffer << file.rdbuf();
  return buffer.str();
}

// The tensors and numbers of a result, in order; nullopt when it holds anything else.
std::optional<std::vector<Tensor>> tensorsOf(const IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) return {{value.toTensor()}};
  if (value.isBool()) return {{Tensor::scalar(value.toBool())}};
  if (value.isInt()) return {{Tensor::scalar(value.toInt())}};
  if (value.isDouble()) return {{Tensor::scalar(value.toDouble())}};
  if (!value.isList() && !value.isTuple()) return std::nullopt;
  std::vector<Tensor> all;
  for (const IValue& e : value.elements()) {
    const auto inner = tensorsOf(e);
    if (!inner) return std::nullopt;
    all.insert(all.end(), inner->begin(), inner->end());
  }
  return all;
}

// NaNs are one: which of two operands gives a sum its sign then is the compiler's choice.
bool sameBits(const Tensor& a_in, const Tensor& b) {
  const Tensor a = a_in.contiguous();
  if (a.dtype() != b.dtype() || !std::ranges::equal(a.sizes(), b.sizes())) return false;
  const size_t item = a.itemSize();
  const auto* const x = static_cast<const char*>(a.rawData());
  const auto* const y = static_cast<const char*>(b.rawData());
  for (int64_t i = 0; i < a.numel(); ++i) {
    const size_t at = static_cast<size_t>(i) * item;
    if (std::memcmp(x + at, y + at, item) == 0) continue;
    const bool both_nan = (a.dtype() == DType::Float && std::isnan(a.data<float>()[i]) &&
                           std::isnan(b.data<float>()[i])) ||
                          (a.dtype() == DType::Double && std::isnan(a.data<double>()[i]) &&
                           std::isnan(b.data<double>()[i]));
    if (!both_nan) return false;
  }
  return true;
}

// Why a script is not compiled: what others have too, and what it alone has.
struct Reason {
  std::string common, own;
};
Reason reasonOf(const Error& e) {
  const auto* const raised = dynamic_cast<const RuntimeError*>(&e);
  std::string text = raised ? raised->brief() : e.what();
  text = text.substr(0, text.find('\n'));
  // "aten::lu: not available on device ahead": the same for many operators.
  const size_t colon = text.find(": ");
  if (colon != std::string::npos && text.find(' ') > colon) {
    return {"OPERATOR: " + text.substr(colon + 2), text.substr(0, colon)};
  }
  return {text, ""};
}

struct Script {
  std::string name;
  std::vector<Tensor> expected;
  Program program;
};

std::vector<Script> scriptsWithPlainResults() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot)) {
    if (entry.path().extension() == ".py") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Script> scripts;
  for (const std::filesystem::path& path : paths) {
    const std::string text = textOf(path);
    if (text.starts_with("# expect error")) continue;
    std::optional<Program> program;
    testing::internal::CaptureStdout();
    std::optional<std::vector<Tensor>> result;
    try {
      program.emplace(compile(text, path.filename().string()));
      result = tensorsOf(program->call("main", {}));
    } catch (const Error&) {
    }
    std::fflush(stdout);
    testing::internal::GetCapturedStdout();
    if (!result) continue;
    const std::string name = path.parent_path().filename().string() + "_" + path.stem().string();
    scripts.push_back({name, *std::move(result), *std::move(program)});
  }
  return scripts;
}

// Compiled so far, of those of the tests; more may be, and never fewer.
constexpr size_t kLeastFolded = 142, kLeastRecorded = 136;

struct Rate {
  size_t compiled = 0, of = 0;
  std::map<std::string, std::vector<std::string>> refused;  // scripts by reason
};

// Compiles all into one library and compares.
Rate tryAll(const std::vector<Script>& scripts, bool fold) {
  Rate rate;
  rate.of = scripts.size();
  const std::string name = fold ? "folded" : "recorded";
  std::vector<aot::Entry> entries;
  std::vector<const Script*> compiled;
  for (const Script& script : scripts) {
    try {
      aot::Program program = aot::record(script.program.function("main"), {}, {.fold = fold});
      aot::BuildOptions options;
      options.name = "alone";
      aot::build(program, options, [](std::string_view) {});  // whether it has a text
      entries.push_back({script.name, std::move(program)});
      compiled.push_back(&script);
    } catch (const Error& e) {
      const Reason reason = reasonOf(e);
      rate.refused[reason.common].push_back(
          reason.own.empty() ? script.name : fmt::format("{} ({})", script.name, reason.own));
    }
  }
  Workshop workshop("scripts_" + name);
  workshop.add(name, std::move(entries));
  const std::string said = workshop.compile();
  EXPECT_EQ(said, "");
  if (!said.empty()) return rate;
  for (const Script* script : compiled) {
    Running running(workshop, name, script->name);
    auto& [model, state] = running;
    std::vector<Tensor> outputs;
    EXPECT_EQ(testing_aot::callAny(model, state, {}, outputs), "") << script->name;
    bool same = outputs.size() == script->expected.size();
    for (size_t i = 0; same && i < outputs.size(); ++i) {
      same = sameBits(script->expected[i], outputs[i]);
    }
    EXPECT_TRUE(same) << script->name;
    rate.compiled += same ? 1 : 0;
  }
  return rate;
}

void print(const char* what, const Rate& rate) {
  fmt::print("{}: {} of {} scripts ({:.1f}%)\n", what, rate.compiled, rate.of,
             100.0 * static_cast<double>(rate.compiled) / static_cast<double>(rate.of));
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons(rate.refused.begin(),
                                                                        rate.refused.end());
  std::ranges::stable_sort(
      reasons, [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (const auto& [reason, scripts] : reasons) {
    fmt::print("{:>4}  {}: {}\n", scripts.size(), reason, fmt::join(scripts, ", "));
  }
  std::fflush(stdout);
}

TEST(ScriptsTest, GiveTheBitsOfTheEngine) {
  const std::vector<Script> scripts = scriptsWithPlainResults();
  ASSERT_GT(scripts.size(), 100u);
  const Rate folded = tryAll(scripts, true);
  print("computed while building", folded);
  // Elements of tensors are not known while building here.
  const Rate recorded = tryAll(scripts, false);
  print("recorded", recorded);
  EXPECT_GE(folded.compiled, kLeastFolded);
  EXPECT_GE(recorded.compiled, kLeastRecorded);
}

}  // namespace
}  // namespace wick::scripts_test
