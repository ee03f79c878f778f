// Saves recorded cases again. Reads folders from standard input, one a line, each with a module.pt
// and an io.pt (see save_corpus.py), and writes for each a line of JSON: what became of it, and
// where the saved archive lies. usage: save_corpus FOLDER-FOR-ARCHIVES [--freeze]
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/budget.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/frozen_module.h"
#include "serialization/export.h"
#include "serialization/import.h"
#include "serialization/torch_save.h"

namespace wick {
namespace {

constexpr double kSeconds = 60;

struct Outcome {
  bool raised = false;
  std::string message;
  std::string bytes;  // of the result, pickled
  IValue value;
};

const IValue& entry(const IValue& io, const char* name) {
  const IValue* found = io.isDict() ? io.toDict().find(IValue(name)) : nullptr;
  WICK_CHECK(found != nullptr, "io.pt: there is no '{}'", name);
  return *found;
}

// The arguments are read again for each run, which may write to them.
Outcome runCase(const Module& module, const std::string& folder) {
  const IValue io = loadValue(folder + "/io.pt");
  Kwargs kwargs;
  for (const auto& [key, value] : entry(io, "kwargs").toDict().items()) {
    kwargs.emplace_back(key.toString(), value);
  }
  Outcome outcome;
  defaultGenerator().seed(0);
  try {
    outcome.value =
        module.run(entry(io, "method").toString(), entry(io, "args").elements(), std::move(kwargs));
    outcome.bytes = saveValueToString(outcome.value);
  } catch (const Error& error) {
    outcome.raised = true;
    outcome.message = error.what();
  }
  return outcome;
}

// The numbers may differ (memory that nobody set, say), the kind of result not.
bool sameKind(const IValue& a, const IValue& b) {
  if (a.tag() != b.tag()) return false;
  if (a.isTensor()) return a.toTensor().describe() == b.toTensor().describe();
  if (a.isList() || a.isTuple()) {
    if (a.elements().size() != b.elements().size()) return false;
    for (size_t i = 0; i < a.elements().size(); ++i) {
      if (!sameKind(a.elements()[i], b.elements()[i])) return false;
    }
  }
  return true;
}

// With `frozen` the module is frozen first; what cannot be frozen counts as not read.
nlohmann::json saveAgain(const std::string& folder, const std::string& saved_path, bool frozen) {
  nlohmann::json line{{"folder", folder}};
  std::optional<Module> original;
  IValue io;
  try {
    io = loadValue(folder + "/io.pt");
    original = loadModule(folder + "/module.pt");
    if (frozen) {
      original->eval();
      original = freeze(*original, {.methods = {entry(io, "method").toString()}});
    }
  } catch (const Error& error) {
    line["unreadable"] = error.what();
    return line;
  }
  try {
    setGradEnabled(entry(io, "grad_enabled").toBool());
    const std::string first = saveModuleToString(*original);
    saveModule(*original, saved_path);
    line["saved"] = saved_path;
    const Module again = loadModule(saved_path);
    line["identical"] = saveModuleToString(again) == first;
    const Outcome expected = runCase(*original, folder);
    const Outcome found = runCase(again, folder);
    line["same"] = expected.raised == found.raised && expected.bytes == found.bytes;
    line["kind"] = expected.raised == found.raised && sameKind(expected.value, found.value);
    if (found.raised) line["raised"] = found.message;
    // Results that hold memory which nobody set differ from run to run.
    if (!line["same"].get<bool>())
      line["steady"] = runCase(*original, folder).bytes == expected.bytes;
  } catch (const Error& error) {
    line["error"] = error.what();
  }
  return line;
}

int saveAll(const std::string& output, bool frozen) {
  size_t number = 0;
  for (std::string folder; std::getline(std::cin, folder); ++number) {
    Budget::Bounds bounds;
    bounds.deadline =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(kSeconds));
    Budget budget(std::move(bounds));
    const BudgetScope scope(&budget);
    const std::string name = std::filesystem::path(folder).filename();
    std::cout << saveAgain(folder, output + "/" + name + ".pt", frozen)
                     .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  const bool frozen = argc == 3 && std::string_view(argv[2]) == "--freeze";
  if (argc != 2 && !frozen) {
    std::cerr << "usage: save_corpus FOLDER-FOR-ARCHIVES [--freeze] < list of folders\n";
    return 2;
  }
  return wick::saveAll(argv[1], frozen);
}
