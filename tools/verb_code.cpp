#include <fmt/format.h>

#include <algorithm>

#include "serialization/archive_reader.h"
#include "serialization/python_printer.h"
#include "tools/verbs.h"

namespace wick::cli {

namespace {

size_t indentOf(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// The text of a method as the archive has it, for one that does not compile: "__torch__.m.Net.f" is
// the method f of class Net in code/__torch__/m.py. Empty when it is not found.
std::string textInArchive(const std::string& path, const std::string& qualified_name) {
  const size_t method_dot = qualified_name.rfind('.');
  const size_t class_dot = qualified_name.rfind('.', method_dot - 1);
  if (method_dot == std::string::npos || class_dot == std::string::npos) return "";
  std::string record = qualified_name.substr(0, class_dot);
  std::ranges::replace(record, '.', '/');
  record = "code/" + record + ".py";
  const std::string class_name = qualified_name.substr(class_dot + 1, method_dot - class_dot - 1);
  const std::string head = "def " + qualified_name.substr(method_dot + 1) + "(";
  ArchiveReader archive = ArchiveReader::open(path);
  if (!archive.has(record)) return "";
  const std::string text(archive.read(record).text());
  std::string found;
  bool in_class = false, in_method = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t indent = indentOf(line);
    if (indent == 0 && !line.empty()) {
      in_class = line.starts_with("class " + class_name + "(");
      in_method = false;
    } else if (in_class && indent == 2) {
      in_method = line.substr(2).starts_with(head);
    }
    if (in_method) found += line + "\n";
  }
  return found;
}

}  // namespace

void codeVerb(const Options& options) {
  const LoadedFile program = LoadedFile::loadAsFarAsPossible(options.file);
  std::string text;
  PythonPrinter printer;  // one for all, for the numbers of constants go on
  size_t printed = 0;
  for (GraphFunction* function : program.functions(options)) {
    if (!program.compiles(*function)) {
      const std::string name = function->qualifiedName();
      text += fmt::format("# {} does not compile\n", name);
      if (program.isArchive() && options.file != "-") text += textInArchive(options.file, name);
      continue;
    }
    printer.printFunction(*function, /*self_type=*/false);
    text += printer.text().substr(printed);
    printed = printer.text().size();
  }
  print(text);
  program.tellErrors();
}

}  // namespace wick::cli
