// The source of functions and methods: of a script as it was written, of an archive as PyTorch
// printed it when it saved the module.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/parser.h"
#include "serialization/archive_reader.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

// Whole lines, so that the indentation of the first stays in step with the others.
std::string wholeLines(const Source& source, const SourceRange& range) {
  const size_t begin = source.lineStart(range.start());
  const size_t end = source.lineEnd(range.end() > range.start() ? range.end() - 1 : range.end());
  return std::string(source.text().substr(begin, end - begin)) + "\n";
}

std::string sourceOf(const std::shared_ptr<const Source>& source, const std::string& name,
                     const std::string& class_name) {
  for (const Stmt& statement : Parser(source).parseModule()) {
    if (statement.kind() == TK_DEF && class_name.empty() &&
        Def(statement.tree()).name().name() == name) {
      return wholeLines(*source, statement.range());
    }
    if (statement.kind() != TK_CLASS_DEF ||
        ClassDef(statement.tree()).name().name() != class_name) {
      continue;
    }
    if (name.empty()) return wholeLines(*source, statement.range());
    for (const Stmt& member : ClassDef(statement.tree()).body()) {
      if (member.kind() == TK_DEF && Def(member.tree()).name().name() == name) {
        return wholeLines(*source, member.range());
      }
    }
  }
  return "";
}

// "__torch__.a.B" stands in code/__torch__/a.py as class B.
std::string classSource(ArchiveReader& archive, const std::string& class_name,
                        const std::string& method) {
  const size_t dot = class_name.rfind('.');
  std::string record = class_name.substr(0, dot);
  std::replace(record.begin(), record.end(), '.', '/');
  record = "code/" + record + ".py";
  auto source = std::make_shared<const Source>(std::string(archive.read(record).text()), record);
  return sourceOf(source, method, class_name.substr(dot + 1));
}

}  // namespace

void codeVerb(const Options& options) {
  const Program program = Program::load(options.file);
  std::string text;
  if (program.isArchive()) {
    ArchiveReader archive = ArchiveReader::open(options.file);
    const std::string method =
        options.method.empty() && options.function.empty() ? "" : program.function(options).name();
    text = classSource(archive, program.module().type()->name(), method);
    WICK_ASSERT(!text.empty(), "no source of {}", program.module().type()->name());
  } else {
    auto source = std::make_shared<const Source>(readTextFile(options.file), options.file);
    if (options.function.empty()) {
      text = source->text();
    } else {
      text = sourceOf(source, program.function(options).name(), "");
    }
  }
  print(text);
}

}  // namespace wick::cli
