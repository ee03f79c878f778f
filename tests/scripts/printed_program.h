// A program printed as source, and that source read again.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/call.h"
#include "serialization/python_printer.h"
#include "serialization/source_import.h"

namespace wick {

// Calls `function`, which takes no arguments, after all that it needs went through its printed
// form.
inline IValue callPrinted(GraphFunction& function) {
  PythonPrinter printer;
  std::map<std::string, std::string> modules;
  std::set<std::string> seen;
  size_t taken = 0;
  const auto take = [&](const std::string& name) {
    modules[name.substr(0, name.rfind('.'))] += printer.text().substr(taken);
    taken = printer.text().size();
  };
  printer.printFunction(function);
  take(function.qualifiedName());
  seen.insert(function.qualifiedName());
  for (size_t before = 0; before != seen.size();) {
    before = seen.size();
    const std::vector<Function*> functions = printer.usedFunctions();
    for (Function* used : functions) {
      if (!seen.insert(used->qualifiedName()).second) continue;
      printer.printFunction(static_cast<GraphFunction&>(*used));
      take(used->qualifiedName());
    }
    const std::vector<TypePtr> types = printer.usedTypes();
    for (const TypePtr& used : types) {
      if (!seen.insert(used->annotation()).second) continue;
      printer.printType(*used);
      take(used->annotation());
    }
  }
  const auto load = [&](const std::string& module) -> std::shared_ptr<const Source> {
    auto found = modules.find(module);
    if (found == modules.end()) return nullptr;
    return std::make_shared<Source>(found->second, module);
  };
  constexpr int64_t kVersion = 10;
  auto unit = std::make_shared<CompilationUnit>();
  auto importer = SourceImporter::create(*unit, load, kVersion);
  importer->setConstants(printer.constants());
  GraphFunction* again = importer->findFunction(function.qualifiedName());
  importer->compileAll();
  RunOptions options;
  options.owner = unit;
  return callFunction(*again, {}, {}, options);
}

}  // namespace wick
