#include <fmt/format.h>

#include "tools/loaded_file.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

// For single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

// For a description of zsh's _arguments, where brackets and colons mean something.
std::string described(const std::string& text) {
  std::string out;
  for (char c : quoted(text)) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

// A function for bash and zsh that prints the names of the methods or functions of the first file among its arguments.
constexpr const char* kNamesFunction =
    "_torchscript_cli_names() {\n"
    "  local file\n"
    "  for file in \"$@\"; do\n"
    "    case $file in\n"
    "      *.pt|*.pth|*.py|*.ptl) [ -f \"$file\" ] && torchscript-cli completions --of \"$file\" "
    "2>/dev/null && return ;;\n"
    "    esac\n"
    "  done\n"
    "}\n";

bool isNameFlag(const std::string& flag) {
  return flag == "--method" || flag == "--function";
}

std::string bashCompletions(const std::vector<VerbWords>& verbs) {
  std::string names;
  std::string cases;
  for (const VerbWords& verb : verbs) {
    names += (names.empty() ? "" : " ") + verb.name;
    std::string flags;
    for (const auto& [flag, help] : verb.flags) flags += (flags.empty() ? "" : " ") + flag;
    cases += fmt::format("    {}) flags='{}' ;;\n", verb.name, flags);
  }
  return fmt::format(
      "# Completions of torchscript-cli for bash.\n"
      "{}"
      "_torchscript_cli() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} flags=''\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[COMP_CWORD - 1]}} in\n"
      "    --method|--function)\n"
      "      mapfile -t COMPREPLY < <(compgen -W \"$(_torchscript_cli_names "
      "\"${{COMP_WORDS[@]}}\")\" -- \"$word\")\n"
      "      return ;;\n"
      "  esac\n"
      "  case ${{COMP_WORDS[1]}} in\n"
      "{}"
      "  esac\n"
      "  case $word in\n"
      "    -*) mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\") ;;\n"
      "    *) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _torchscript_cli torchscript-cli\n",
      kNamesFunction, names, cases);
}

std::string zshCompletions(const std::vector<VerbWords>& verbs) {
  std::string names;
  std::string cases;
  for (const VerbWords& verb : verbs) {
    names += fmt::format("    '{}:{}'\n", verb.name, described(verb.help));
    cases += fmt::format("    {})\n      _arguments \\\n", verb.name);
    for (const auto& [flag, help] : verb.flags) {
      const char* const value =
          isNameFlag(flag) ? ":name:{compadd -- $(_torchscript_cli_names $words)}" : "";
      cases += fmt::format("        '*{}[{}]{}' \\\n", flag, described(help), value);
    }
    cases += "        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(
      "#compdef torchscript-cli\n"
      "# Completions of torchscript-cli for zsh.\n"
      "{}"
      "_torchscript_cli() {{\n"
      "  local -a verbs\n"
      "  verbs=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $verb in\n"
      "{}"
      "  esac\n"
      "}}\n"
      "_torchscript_cli \"$@\"\n",
      kNamesFunction, names, cases);
}

// For single quotes of fish, where a backslash means something, too.
std::string quotedForFish(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string fishCompletions(const std::vector<VerbWords>& verbs) {
  std::string text =
      "# Completions of torchscript-cli for fish.\n"
      "function __torchscript_cli_names\n"
      "  for file in (commandline -opc)\n"
      "    if string match -qr '\\.(pt|pth|py|ptl)$' -- $file; and test -f $file\n"
      "      torchscript-cli completions --of $file 2>/dev/null; and return\n"
      "    end\n"
      "  end\n"
      "end\n";
  for (const VerbWords& verb : verbs) {
    text += fmt::format("complete -c torchscript-cli -f -n __fish_use_subcommand -a {} -d '{}'\n",
                        verb.name, quotedForFish(verb.help));
  }
  for (const VerbWords& verb : verbs) {
    for (const auto& [flag, help] : verb.flags) {
      text += fmt::format(
          "complete -c torchscript-cli -n '__fish_seen_subcommand_from {}' -l {} -d '{}'{}\n",
          verb.name, flag.substr(2), quotedForFish(help),
          isNameFlag(flag) ? " -x -a '(__torchscript_cli_names)'" : "");
    }
  }
  return text;
}

}  // namespace

void completionsVerb(const Options& options) {
  if (!options.file.empty()) {
    const LoadedFile program = LoadedFile::loadAsFarAsPossible(options.file);
    std::string names;
    for (const GraphFunction* function : program.functions({})) names += function->name() + "\n";
    print(names);
    return;
  }
  if (options.shell.empty()) throw CommandLineError("completions: expected bash, zsh or fish");
  const std::vector<VerbWords> verbs = listVerbs();
  print(options.shell == "bash"  ? bashCompletions(verbs)
        : options.shell == "zsh" ? zshCompletions(verbs)
                                 : fishCompletions(verbs));
}

}  // namespace wick::cli
