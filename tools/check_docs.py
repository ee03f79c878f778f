#!/usr/bin/env python3
"""Compares README.md, CONTRIBUTING.md and docs/ with the sources, and needs no build.

usage: tools/check_docs.py [ROOT]

Paths, Bazel targets, links and `file: function` must lead to something, and so must pages that comments name. docs/cli.md's table
holds each verb of torchscript-cli once; each flag has its help in tools/options.cpp, and a flag that a page names exists.
docs/environment.md lists each environment variable that the code reads, docs/embedding.md each class of errors. Prints one line
for each fault, and ends with exit code 1 when there is any.
"""
import collections, glob, os, re, subprocess, sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OPTIONS = "tools/options.cpp"
VERBS_PAGE = "docs/cli.md"
ENVIRONMENT_PAGE = "docs/environment.md"
ERRORS_PAGE = "docs/embedding.md"
ERRORS_SOURCE = "core/error_types.h"
# Flags of programs that are not ours.
FOREIGN_FLAGS = {"--cflags", "--config", "--gtest_filter", "--gtest_repeat", "--help", "--help-all", "--libs", "--repo_env"}


class Tree:
    """The files of the repository, and the faults that were found."""

    def __init__(self, root):
        self.root = root
        listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True)
        if listed.returncode == 0:
            files = [f for f in listed.stdout.split("\n") if f and os.path.exists(os.path.join(root, f))]
        else:
            files = []
            for folder, inner, names in os.walk(root):
                inner[:] = sorted(d for d in inner if not d.startswith((".git", "bazel-")))
                files += [os.path.relpath(os.path.join(folder, name), root) for name in names]
        self.files = sorted(f for f in files if not f.startswith("third_party/"))
        self.pages = [f for f in self.files
                      if f in ("README.md", "CONTRIBUTING.md") or f.startswith("docs/") and f.endswith(".md")]
        self.folders = {"/".join(f.split("/")[:n]) for f in files for n in range(1, f.count("/") + 1)}
        self.tops = sorted({f.split("/")[0] for f in files if "/" in f})
        self.texts = {}
        self.faults = []

    def text(self, path):
        if path not in self.texts:
            try:
                with open(os.path.join(self.root, path), encoding="utf-8") as file:
                    self.texts[path] = file.read()
            except (FileNotFoundError, UnicodeDecodeError):
                self.texts[path] = ""
        return self.texts[path]

    def fault(self, path, at, message):
        line = self.text(path).count("\n", 0, at) + 1
        self.faults.append((path, line, message))

    def exists(self, path):
        path = path.rstrip("/")
        return path in self.folders or os.path.exists(os.path.join(self.root, path))

    def is_made(self, name):
        """Whether a BUILD file names it, as it does what a rule writes."""
        return any(f'"{name}"' in self.text(f) for f in self.files if os.path.basename(f) == "BUILD")

    def has_target(self, package, name):
        """Rules are named after what they build; what a macro lists is named after its source."""
        folder = package + "/" if package else ""
        return folder + "BUILD" in self.files and (
            name == "all" or f'"{name}"' in self.text(folder + "BUILD")
            or folder + name in self.files or folder + name + ".cpp" in self.files)


def blanked(text, pattern, flags=0):
    """The text with blanks for what the pattern finds: positions stay."""
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=flags)


def code_only(text):
    """Blocks, indented lines and what stands in backticks."""
    kept = re.compile(r"^```.*?^```|^    [^\n]*|`[^`\n]+`", re.S | re.M)
    out, at = [], 0
    for found in kept.finditer(text):
        out += [re.sub(r"[^\n]", " ", text[at : found.start()]), found.group()]
        at = found.end()
    return "".join(out) + re.sub(r"[^\n]", " ", text[at:])


def without_blocks(text):
    return blanked(text, r"^```.*?^```", re.S | re.M)


# ---- paths, targets, links

def check_path(tree, page, at, word):
    word = word.rstrip(".,:")
    if tree.exists(word):
        return
    # NAME stands for any name.
    pattern = re.sub(r"[A-Z]{3,}", "*", word)
    if glob.glob(os.path.join(tree.root, pattern)):
        return
    if tree.is_made(os.path.basename(word)):
        return
    package, _, name = word.rpartition("/")
    if "." not in name and tree.has_target(package, name):
        return
    tree.fault(page, at, f"{word}: there is no such file or folder")


def check_paths(tree, page):
    text = blanked(tree.text(page), r"\w+://\S+|\]\([^)\s]*\)")
    tops = "|".join(map(re.escape, tree.tops))
    # Targets: //package:name, or package:name.
    label = rf"(?<![\w:/.-])(?://(?P<package>[\w/.-]*)|(?P<bare>(?:{tops})/[\w/-]+)(?=:[a-z]))(?::(?P<name>[\w.-]+))?"
    for found in re.finditer(label, text):
        package = (found["package"] or found["bare"] or "").rstrip(".,")
        name = (found["name"] or "").rstrip(".,")
        if not package and not name:
            continue
        if found["package"] is not None and found["package"].endswith("..."):
            good = tree.exists(package.rstrip("/")) or package.rstrip("/") == ""
        else:
            good = tree.has_target(package.rstrip("/"), name or package.split("/")[-1])
        if not good:
            tree.fault(page, found.start(), f"{found.group()}: there is no such target")
    text = blanked(text, label)
    for found in re.finditer(r"(?<![\w/.-])bazel-bin/([\w./*${}-]+)", text):
        parts = found[1].rstrip(".").split("/")
        splits = [("/".join(parts[:n]), "/".join(parts[n:])) for n in range(len(parts))]
        if not re.search(r"[*$]", found[1]) and not any(tree.has_target(*split) for split in splits):
            tree.fault(page, found.start(), f"{found.group()}: no target makes it")
    for found in re.finditer(rf"(?<![\w/.$@:<-])(?:{tops})/[\w./*-]*", text):
        check_path(tree, page, found.start(), found.group())
    # Names of sources without their folder, or behind a part of it.
    bases = {"/" + f for f in tree.files}
    for code in re.finditer(r"`([^`\n]+)`", without_blocks(text)):
        for found in re.finditer(r"(?<![\w/.$@:<*-])[\w-]+(?:/[\w.-]+)*\.(?:h|cpp|sh|bzl|svg)\b(?!/)", code[1]):
            word = found.group()
            if word.split("/")[0] in tree.tops or any(f.endswith("/" + word) for f in bases):
                continue
            # Or what a command writes for a file of that name, such as an example's model.
            if any("/" + os.path.splitext(word)[0] + "." in f for f in bases):
                continue
            if not tree.is_made(word) and not re.search(r"[A-Z]{3,}", word):
                tree.fault(page, code.start(1) + found.start(), f"{word}: there is no such file")


def check_places(tree, page):
    """`file: function`: the file must say the function's name, with that of its class where it is given."""
    for found in re.finditer(r"`([\w./-]+\.\w+): ([\w:~()]+)`", tree.text(page)):
        path, name = found[1], found[2]
        if path not in tree.files:
            continue  # check_paths tells
        scope, _, last = name.rpartition("::")
        word = re.escape(last) if last == "operator()" else rf"\b{re.escape(last)}\b"
        if scope:
            word = rf"(\b{scope}::{word})|(\b(class|struct) {scope}\b.*\b{word})"
        if not re.search(word, tree.text(path), re.S):
            tree.fault(page, found.start(), f"{path} has no {name}")


def anchors(text):
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
            for heading in re.findall(r"^#+ +(.*)$", without_blocks(text), re.M)}


def check_links(tree, page):
    for found in re.finditer(r"\]\(([^)\s]+)\)", without_blocks(tree.text(page))):
        target, _, anchor = found[1].partition("#")
        if re.match(r"\w+:", target):
            continue
        path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
        if not tree.exists(path):
            tree.fault(page, found.start(1), f"{found[1]}: the link leads nowhere")
        elif anchor and anchor not in anchors(tree.text(path)):
            tree.fault(page, found.start(1), f"{found[1]}: {path} has no such heading")


def check_references(tree):
    """Comments name pages under docs/, perhaps with a heading in quotes behind the name."""
    for path in tree.files:
        if path.endswith((".md", ".svg")) or path.startswith("tests/tools/check_docs"):
            continue
        for found in re.finditer(r"(?<![\w/])docs/[\w/]+\.md(?:,[\s/#*]+\"([^\"\n]+)\")?", tree.text(path)):
            page = found.group().split(".md")[0] + ".md"
            if not tree.exists(page):
                tree.fault(path, found.start(), f"{page}: there is no such page")
            elif found[1] and found[1] not in re.findall(r"^#+ +(.*)$", tree.text(page), re.M):
                tree.fault(path, found.start(), f"{page} has no heading {found[1]}")


# ---- verbs and flags

def functions(text):
    """Names and bodies of functions, and of the lambdas in them that add options."""
    for found in re.finditer(r"^void (\w+)\(([^)]*)\) \{\n(.*?)^\}", text, re.S | re.M):
        yield found[1], found[3], found.start(3)
    for found in re.finditer(r"const auto (\w+) = \[[^\]]*\]\([^{}]*\) \{\n(.*?)^  \};", text, re.S | re.M):
        yield found[1], found[2], found.start(2)


def flags_of_verbs(tree):
    """For each verb its flags, from what tools/options.cpp says; faults where a flag has no help."""
    text = tree.text(OPTIONS)
    own = collections.defaultdict(set)  # (function, variable) -> flags
    calls = collections.defaultdict(set)  # (function, variable) -> functions that are given the variable
    verbs = {}  # name -> (function, variable), position
    for function, body, begin in functions(text):
        made = r'(?:CLI::App\*? (\w+)\s*=\s*)?(?:\bverb\(\s*\w+,|app\.add_subcommand\()\s*"([\w-]+)"'
        for found in re.finditer(made, body):
            outer = re.search(r"(\w+)\($", body[: found.start()])
            variable = found[1] or found[2]
            verbs[found[2]] = (function, variable), begin + found.start()
            if "verb(" in found.group():
                calls[function, variable].add("verb")
            if outer and not found[1]:
                calls[function, variable].add(outer[1])
        # The third part is the begin of the help: a text, or a name of one.
        option = r'(\w+)\s*(?:->|\.)\s*add_(?:option|flag)\(\s*"([\w-]+)",\s*[\w.]+,\s*(""|"|\w)?'
        for found in re.finditer(option, body):
            if found[2].startswith("--"):
                own[function, found[1]].add(found[2])
            if found[3] in (None, '""'):
                tree.fault(OPTIONS, begin + found.start(), f"{found[2]} has no help")
        for found in re.finditer(r"\b(add[A-Z]\w*)\(\*?(\w+)[,)]", body):
            calls[function, found[2]].add(found[1])

    def gathered(function, seen):
        """The flags that a function adds to what it is given."""
        if function in seen:
            return set()
        seen = seen | {function}
        found = set()
        for variable in ("verb", "sub"):
            found |= own[function, variable]
            for called in list(calls[function, variable]):
                found |= gathered(called, seen)
        return found

    result = {}
    for verb, ((function, variable), at) in verbs.items():
        flags = set(own[function, variable])
        for called in list(calls[function, variable]):
            flags |= gathered(called, set())
        result[verb] = flags, at
    return result


def commands(text):
    """What pages say to torchscript-cli: position, verb, flags with positions."""
    for found in re.finditer(r"torchscript-cli ([a-z]+)\b((?:\\\n|[^`\n|])*)", code_only(text)):
        rest = re.sub(r"(?<=\S) {2,}#.*", "", found[2])
        yield found.start(1), found[1], [(found.start(2) + f.start(), f.group())
                                         for f in re.finditer(r"(?<![\w-])--[a-z][\w-]*", rest)]


def check_verbs(tree):
    verbs = flags_of_verbs(tree)
    if not verbs:
        tree.fault(OPTIONS, 0, "no verbs were found here")
    page = tree.text(VERBS_PAGE)
    rows = collections.defaultdict(list)
    begin = page.find("| command | does |")
    table = page[begin : page.find("\n\n", begin)] if begin >= 0 else ""
    for row in re.finditer(r"^\| `([a-z]+)\b([^`]*)`", table, re.M):
        at = begin + row.start()
        rows[row[1]].append(at)
        if row[1] not in verbs:
            tree.fault(VERBS_PAGE, at, f"torchscript-cli has no verb {row[1]}")
            continue
        for flag in re.findall(r"--[a-z][\w-]*", row[2]):
            if flag not in verbs[row[1]][0]:
                tree.fault(VERBS_PAGE, at, f"{row[1]} has no flag {flag}")
    for verb, (_, at) in verbs.items():
        if len(rows[verb]) != 1:
            tree.fault(OPTIONS, at, f"the table of verbs in {VERBS_PAGE} holds {verb} {len(rows[verb])} times")
    known = set(FOREIGN_FLAGS).union(*(flags for flags, _ in verbs.values()))
    for path in tree.files:  # other programs of ours
        if path.endswith((".py", ".sh")) or path.startswith("tests/") and path.endswith(".cpp"):
            known |= set(re.findall(r"(?<![\w-])--[a-z][\w-]*", tree.text(path)))
    for page in tree.pages:
        text = tree.text(page)
        for at, verb, flags in commands(text):
            if verb not in verbs:
                tree.fault(page, at, f"torchscript-cli has no verb {verb}")
                continue
            for where, flag in flags:
                if flag not in verbs[verb][0] | FOREIGN_FLAGS:
                    tree.fault(page, where, f"torchscript-cli {verb} has no flag {flag}")
        for found in re.finditer(r"`(--[a-z][\w-]*)", text):
            if found[1] not in known:
                tree.fault(page, found.start(1), f"no program has a flag {found[1]}")


# ---- environment variables

def variables_read(tree):
    """Names of environment variables, each with where it is read first."""
    found = {}

    def note(name, path, at):
        found.setdefault(name, (path, at))

    for path in tree.files:
        text = tree.text(path) if path.endswith((".c", ".cpp", ".h", ".py", ".sh")) else ""
        if path.endswith((".c", ".cpp", ".h")):
            text = blanked(text, r"//[^\n]*")
            for read in re.finditer(r'\b(?:getenv|isSwitchedOn|numberFromEnvironment)\(\s*"(\w+)"\s*[,)]', text):
                note(read[1], path, read.start())
            # Where a function or a list gives the name, all words in capitals may be names.
            if re.search(r"\bgetenv\(\s*[a-z]", text):
                for word in re.finditer(r'"([A-Z][A-Z0-9_]{3,})"', text):
                    note(word[1], path, word.start())
        elif path.endswith(".py"):
            for read in re.finditer(r"""\bos\.(?:environ\.get\(|getenv\(|environ\[)\s*["'](\w+)["'](?!\] =)""", text):
                note(read[1], path, read.start())
        elif path.endswith(".sh"):
            for read in re.finditer(r"\$\{([A-Z][A-Z0-9_]+):?[-?+]", text):
                note(read[1], path, read.start())
    return found


def check_variables(tree):
    read = variables_read(tree)
    listed = collections.defaultdict(list)
    for page in tree.pages:
        for row in re.finditer(r"^\| `([A-Z][A-Z0-9_]*)` \|(.*)\|\s*$", tree.text(page), re.M):
            if page == ENVIRONMENT_PAGE:
                listed[row[1]].append(row.start())
                if not row[2].split("|")[-1].strip():
                    tree.fault(page, row.start(), f"{row[1]} has no sentence")
            elif row[1] in read:
                tree.fault(page, row.start(), f"{row[1]} belongs into the list of {ENVIRONMENT_PAGE} alone")
    for name, (path, at) in sorted(read.items()):
        if name not in listed:
            tree.fault(path, at, f"{ENVIRONMENT_PAGE} does not list {name}")
    for name, places in listed.items():
        if name not in read:
            tree.fault(ENVIRONMENT_PAGE, places[0], f"no code reads {name}")
        for at in places[1:]:
            tree.fault(ENVIRONMENT_PAGE, at, f"{name} is listed twice")
    for page in tree.pages:
        macros = re.compile(r"#define (WICK_\w+)")
        for found in re.finditer(r"\b(WICK_[A-Z_]+)=", tree.text(page)):
            if found[1] not in read and not any(found[1] in macros.findall(tree.text(f)) for f in tree.files):
                tree.fault(page, found.start(), f"no code reads {found[1]}")


# ---- errors

def check_errors(tree):
    classes = re.findall(r"^class (\w*Error) : public", tree.text(ERRORS_SOURCE), re.M)
    rows = collections.defaultdict(list)
    for page in tree.pages:
        for row in re.finditer(r"^\| `(\w*Error)` \|", tree.text(page), re.M):
            rows[row[1]].append((page, row.start()))
    for name in classes:
        at = tree.text(ERRORS_SOURCE).find(f"class {name} ")
        if len(rows[name]) != 1:
            tree.fault(ERRORS_SOURCE, at, f"tables of docs hold {name} {len(rows[name])} times")
    text = tree.text(ERRORS_PAGE)
    for name, places in rows.items():
        for page, at in places:
            if page == ERRORS_PAGE and name not in classes and at > text.find("## Errors"):
                tree.fault(page, at, f"{ERRORS_SOURCE} has no class {name}")


def faults(root):
    tree = Tree(root)
    for page in tree.pages:
        check_paths(tree, page)
        check_places(tree, page)
        check_links(tree, page)
    check_references(tree)
    check_verbs(tree)
    check_variables(tree)
    check_errors(tree)
    return sorted(set(tree.faults))


def main():
    found = faults(sys.argv[1] if len(sys.argv) > 1 else HERE)
    for path, line, message in found:
        print(f"{path}:{line}: {message}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
