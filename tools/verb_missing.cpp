// What keeps programs from compiling: every function of every file is compiled on its own and
// lowered, so that one gap does not hide the others; the printed source of archives is searched
// for operators behind the first unknown one of a function; and calls that compile but raise
// whenever they are reached are listed.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "frontend/builtin_table.h"
#include "frontend/compile.h"
#include "frontend/lexer.h"
#include "ir/operator.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/ops/refusals.h"
#include "serialization/exported/import.h"
#include "serialization/exported/package.h"
#include "serialization/file_kind.h"
#include "serialization/import.h"
#include "tools/json_text.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

namespace fs = std::filesystem;

// Ordered as the table shows them when they occur in equally many files.
enum class Kind { Operator, Overload, Construct, Call, Unreadable };

constexpr const char* kKindNames[] = {"operator", "overload", "construct", "call", "unreadable"};

struct Gap {
  Kind kind;
  std::string name;
  auto operator<=>(const Gap&) const = default;
};

struct FileResult {
  std::string path;
  std::map<Gap, std::string> gaps;  // with the whole message
  bool no_program = false;          // tensors alone, which lack nothing and cannot run
};

bool holdsTensors(FileKind kind) {
  switch (kind) {
    case FileKind::SavedValue:
    case FileKind::SavedTensor:
    case FileKind::SavedObjects:
    case FileKind::Npy:
    case FileKind::Npz:
    case FileKind::Safetensors:
    case FileKind::Gguf:
      return true;
    default:
      return false;
  }
}

std::string firstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The part of a message behind `prefix` up to one of `ends`; empty when it begins differently.
std::string between(const std::string& text, std::string_view prefix, const char* ends) {
  if (!text.starts_with(prefix)) return "";
  std::string rest = text.substr(prefix.size());
  return rest.substr(0, rest.find_first_of(ends));
}

// By the first words of the messages, which tests of this verb hold to.
Gap classify(const std::string& brief) {
  std::string unknown = between(brief, "Unknown builtin op: ", "; \n");
  if (!unknown.empty()) return {Kind::Operator, unknown};
  if (std::string module = between(brief, "module '", "'"); !module.empty()) {
    std::string member = between(brief, "module '" + module + "' has no attribute '", "'");
    if (!member.empty()) return {Kind::Operator, module + "." + member};
  }
  for (std::string_view prefix :
       {"Arguments for call are not valid: no overload of ", "no operator "}) {
    std::string call = between(brief, prefix, "\n");
    if (!call.empty()) return {Kind::Overload, call};
  }
  return {Kind::Construct, firstLine(brief)};
}

bool isKnownTorchName(const std::string& name) {
  if (!OperatorRegistry::instance().overloads(Symbol::fromQualString("aten::" + name)).empty()) {
    return true;
  }
  GraphFunction scratch("<lookup>", std::make_shared<Graph>());
  return builtinMember("torch", name, scratch) != nullptr;
}

bool isKnownOperator(const std::string& name) {
  return !OperatorRegistry::instance().overloads(Symbol::fromQualString(name)).empty();
}

// Calls of the forms torch.NAME(...) and ops.NAMESPACE.NAME(...) in printed source whose operator
// does not exist.
std::set<std::string> unknownCalls(const std::string& text) {
  std::set<std::string> names;
  const auto inName = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  const auto wordAt = [&](size_t begin) {
    size_t end = begin;
    while (end < text.size() && inName(text[end])) ++end;
    return text.substr(begin, end - begin);
  };
  for (const std::string_view head : {std::string_view("torch."), std::string_view("ops.")}) {
    for (size_t at = text.find(head); at != std::string::npos; at = text.find(head, at + 1)) {
      if (at > 0 && (inName(text[at - 1]) || text[at - 1] == '.')) continue;
      std::string name = wordAt(at + head.size());
      size_t end = at + head.size() + name.size();
      std::string space = "aten";
      if (head == "ops.") {
        if (end >= text.size() || text[end] != '.') continue;
        space = std::exchange(name, wordAt(end + 1));
        end += 1 + name.size();
      }
      if (name.empty() || end >= text.size() || text[end] != '(') continue;
      const std::string full = space + "::" + name;
      if (!(space == "aten" ? isKnownTorchName(name) : isKnownOperator(full))) names.insert(full);
    }
  }
  return names;
}

void note(FileResult& result, const std::string& brief, const std::string& message) {
  result.gaps.emplace(classify(brief), message);
}

// The archive, if it is one of torch.export; null for others.
std::shared_ptr<ArchiveReader> openExported(const std::string& path) {
  const Bytes file = mapFile(path);
  if (contentsOf(file).kind != FileKind::ExportedProgram) return nullptr;
  for (const auto layout : {ArchiveReader::Layout::OneFolder, ArchiveReader::Layout::Flat}) {
    try {
      auto archive = std::make_shared<ArchiveReader>(file, path, ArchiveLimits(), layout);
      if (exported::isExportedProgram(*archive)) return archive;
    } catch (const LoadError&) {
    }
  }
  return nullptr;
}

// What remains hidden behind a function's first unknown operator.
void searchSource(FileResult& result) {
  if (const auto exported = openExported(result.path)) {
    for (const std::string& name : exported::unknownOperators(exported)) {
      result.gaps.emplace(Gap{Kind::Operator, name}, "called in the program");
    }
    return;
  }
  ArchiveReader archive = ArchiveReader::open(result.path);
  for (const std::string& record : archive.records()) {
    if (!record.starts_with("code/") || !record.ends_with(".py")) continue;
    for (const std::string& name : unknownCalls(std::string(archive.read(record).text()))) {
      result.gaps.emplace(Gap{Kind::Operator, name}, "called in " + record);
    }
  }
}

// Operators that are there and refuse every call.
void noteRefusals(FileResult& result, const Block& block) {
  for (const Node* node : block.nodes()) {
    const Operator* op = node->kind().isPrim() ? nullptr : node->maybeOperator();
    if (const char* reason = op ? ops::refusalOf(*op) : nullptr) {
      result.gaps.emplace(Gap{Kind::Call, op->schema().name()},
                          fmt::format("{} {}", op->schema().name(), reason));
    }
    for (const Block* inner : node->blocks()) noteRefusals(result, *inner);
  }
}

// Operators may also be missing for the types that only the whole pipeline sees.
void lowerAll(FileResult& result, const CompilationUnit& unit) {
  for (const auto& function : unit.functions()) {
    if (!function->isDefined()) continue;
    noteRefusals(result, *function->graph()->block());
    try {
      GraphExecutor::of(*function).code();
    } catch (const CompileError& error) {
      note(result, error.brief(), error.what());
    } catch (const RuntimeError& error) {
      note(result, error.brief(), error.what());
    }
  }
}

void compileFile(FileResult& result) {
  CompileErrors errors = CompileErrors::unlimited();
  Module module;  // keeps the unit alive
  std::shared_ptr<CompilationUnit> unit;
  const bool script = result.path.ends_with(".py");
  if (script) {
    unit = std::make_shared<CompilationUnit>();
    compileInto(unit, readTextFile(result.path), result.path, &errors);
  } else {
    LoadOptions options;
    options.compile_errors = &errors;
    options.devices = Device();
    module = loadModule(result.path, options);
    unit = compilationUnitOf(module);
  }
  for (const CompileError& error : errors.all()) note(result, error.brief(), error.what());
  lowerAll(result, *unit);
}

FileResult examine(const std::string& path) {
  FileResult result{path, {}};
  try {
    compileFile(result);
  } catch (const CompileError& error) {
    note(result, error.brief(), error.what());
  } catch (const RuntimeError& error) {
    note(result, error.brief(), error.what());
  } catch (const LoadError& error) {
    const auto* wrong = dynamic_cast<const WrongFile*>(&error);
    result.no_program = wrong && holdsTensors(wrong->kind());
    const std::string message = messageFor(error, Interface::CommandLine);
    if (!result.no_program) {
      result.gaps.emplace(Gap{Kind::Unreadable, firstLine(message)}, message);
    }
  }
  // One gap may hide others: behind it in its function, and in functions that were never compiled.
  if (!result.gaps.empty() && !path.ends_with(".py")) {
    try {
      searchSource(result);
    } catch (const LoadError&) {
      // Not an archive, as the gap says.
    }
  }
  return result;
}

bool isProgram(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".py");
}

// Files are taken as they are; of folders the scripts and the archives, torch.save's own left out.
std::vector<std::string> filesOf(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry :
         fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied)) {
      if (!entry.is_regular_file() || !isProgram(entry.path())) continue;
      const std::string name = entry.path().string();
      try {
        if (!name.ends_with(".py") && !ArchiveReader::open(name).has("constants.pkl")) continue;
      } catch (const LoadError&) {
        // Reported when the file is read.
      }
      inside.push_back(name);
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

struct Row {
  Gap gap;
  size_t files = 0;     // that have it
  size_t unblocks = 0;  // that have no other
  std::string example;
  std::string message;
};

std::vector<Row> rowsOf(const std::vector<FileResult>& results) {
  std::map<Gap, Row> rows;
  for (const FileResult& result : results) {
    for (const auto& [gap, message] : result.gaps) {
      Row& row = rows.try_emplace(gap, Row{gap, 0, 0, result.path, message}).first->second;
      ++row.files;
      if (result.gaps.size() == 1) ++row.unblocks;
    }
  }
  std::vector<Row> sorted;
  for (auto& [gap, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
    return a.unblocks != b.unblocks ? a.unblocks > b.unblocks : a.files > b.files;
  });
  return sorted;
}

std::string asJson(const std::vector<Row>& rows, size_t files, size_t complete,
                   const std::vector<std::string>& without_program) {
  nlohmann::ordered_json gaps = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    gaps.push_back({{"kind", kKindNames[static_cast<size_t>(row.gap.kind)]},
                    {"name", row.gap.name},
                    {"files", row.files},
                    {"unblocks", row.unblocks},
                    {"example", row.example},
                    {"message", row.message}});
  }
  return jsonLine(nlohmann::ordered_json{{"files", files},
                                         {"complete", complete},
                                         {"without_program", without_program},
                                         {"gaps", gaps}});
}

std::string asTable(const std::vector<Row>& rows, size_t files, size_t complete,
                    const std::vector<std::string>& without_program) {
  std::string text;
  if (files > 0) text = fmt::format("{} of {} files lack nothing\n", complete, files);
  for (const std::string& path : without_program) text += path + " holds no program\n";
  if (rows.empty()) return text;
  text += "\nunblocks  files  kind        name\n";
  for (const Row& row : rows) {
    text += fmt::format("{:>8}  {:>5}  {:<10}  {}\n", row.unblocks, row.files,
                        kKindNames[static_cast<size_t>(row.gap.kind)], row.gap.name);
  }
  return text;
}

}  // namespace

void missingVerb(const Options& options) {
  std::vector<FileResult> results;
  std::vector<std::string> without_program;
  for (const std::string& file : filesOf(options.paths)) {
    if (!fs::exists(file)) throwLoadError("{}: no such file or folder", file);
    FileResult result = examine(file);
    if (result.no_program) {
      without_program.push_back(file);
    } else {
      results.push_back(std::move(result));
    }
  }
  const std::vector<Row> rows = rowsOf(results);
  const size_t complete = static_cast<size_t>(
      std::ranges::count_if(results, [](const FileResult& r) { return r.gaps.empty(); }));
  print(options.json ? asJson(rows, results.size(), complete, without_program)
                     : asTable(rows, results.size(), complete, without_program));
  if (complete != results.size()) {
    throw UsageError(fmt::format("{} of {} files cannot run as a whole", results.size() - complete,
                                 results.size()));
  }
}

}  // namespace wick::cli
