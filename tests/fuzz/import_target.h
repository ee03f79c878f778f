// Fuzz targets: whole archives of modules, and the source text of one, loaded and run within
// limits.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "serialization/archive_writer.h"
#include "serialization/import.h"
#include "serialization/python_printer.h"
#include "tests/fuzz/call_target.h"

namespace wick {

// What load() makes of the bytes, and each method that takes simple arguments.
inline void loadAndRunTarget(const std::string& input) {
  LoadOptions options;
  options.run = fuzzRunOptions();
  Module module =
      loadModule(copyBytes(std::as_bytes(std::span(input.data(), input.size()))), "fuzz", options);
  const std::shared_ptr<CompilationUnit> unit = compilationUnitOf(module);
  for (size_t i = 0; i < unit->functions().size(); ++i) {
    GraphFunction& function = *unit->functions()[i];
    callWithLimits(function, unit, IValue(module.object()));
  }
}

// An archive of one module M with this source, whose pickle gives it no attributes.
inline std::string archiveOfSource(const std::string& source) {
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "fuzz");
  writer.write("data.pkl", std::string_view("\x80\x02"
                                            "c__torch__\nM\n)\x81}b."));
  writer.write("code/__torch__.py", source);
  writer.write("constants.pkl", std::string_view("\x80\x02)."));
  writer.write("version", std::string_view("3\n"));
  writer.finish();
  return out;
}

inline void sourceImportTarget(const std::string& input) {
  loadAndRunTarget(archiveOfSource(input));
}

// What the printer writes of a module is read back, and printed as the same text.
inline void printerTarget(const std::string& input) {
  // With all that it uses; the lists grow while it prints.
  const auto printed = [](const Module& module) {
    PythonPrinter printer;
    printer.printType(*module.type());
    for (size_t types = 0, functions = 0;
         types < printer.usedTypes().size() || functions < printer.usedFunctions().size();) {
      if (types < printer.usedTypes().size()) {
        const TypePtr type = printer.usedTypes()[types++];
        if (*type != *module.type()) printer.printType(*type);
      } else {
        printer.printFunction(static_cast<GraphFunction&>(*printer.usedFunctions()[functions++]));
      }
    }
    return printer.text();
  };
  const auto load = [](const std::string& archive) {
    return loadModule(copyBytes(std::as_bytes(std::span(archive.data(), archive.size()))), "fuzz");
  };
  const Module module = load(archiveOfSource(input));
  const std::string first = printed(module);
  // Constants would need their pickle.
  if (first.find("CONSTANTS") != std::string::npos) return;
  std::string second;
  try {
    second = printed(load(archiveOfSource(first)));
  } catch (const Error& error) {
    throw InternalError(__FILE__, __LINE__,
                        "printed source is not read back: " + error.message() + "\n" + first);
  }
  WICK_ASSERT(first == second, "printed again, source differs:\n{}\n{}", first, second);
}

}  // namespace wick
