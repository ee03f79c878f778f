#!/usr/bin/env python3
"""Finds words in comments, messages and documents that CONTRIBUTING.md asks to avoid.

usage: tools/check_prose.py [FILE...]        (without files: everything that git knows)

Prints one line for each find, and ends with exit code 1 when there is any.
"""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# For each row of the table in CONTRIBUTING.md what finds its words; `_` stands for blanks and ends of lines. They are
# allowed where a plain meaning is common ("there is none", "each of which").
PATTERNS = {
    "is none": r"(?<!\bthere )\b(?:is|are)_(?-i:none)\b(?!_of\b)",
    "of which": r"(?<!\beach )(?<!\bsome )(?<!\bmost )(?<!\bboth )(?<!\bmany )(?<!\ball )(?<!\bone )(?<!\btwo )"
                r"(?<!\bfirst )(?<!\bsecond )"
                r"(?<!\bwhich attribute )\bof_which\b",
    "truth value": r"\btruth_values?\b",
    "turn": r"\b(?:every|each|number_of|rest_of_the|many|enough|\d+)_turns?\b",
    "places": r"\bplaces_(?:of|that|where|at_which)\b",
    "for": r",_for_(?:it|they|this|there|nobody|then|its|their|others)_\w+",
    "besides": r"\bbesides(?=[.:;)]|$)",
    "in about": r"\bin_about(?=[.:;)]|$)",
    "so many": r"\bup_to_so_many\b",
}
OTHER_ROOMS = ("third_party/",)  # not ours


def listed():
    """The words of CONTRIBUTING.md's table, which must be those that are looked for."""
    with open(os.path.join(ROOT, "CONTRIBUTING.md")) as file:
        section = file.read().split("## Words", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| “([^”]*)”", section, re.M)


def prose(path, text):
    """The text with everything blanked that is not prose."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group())

    if path.endswith(".md"):
        text = re.sub(r"```.*?```", blank, text, flags=re.S)
        text = re.sub(r"^\| “[^”]*” .*$", blank, text, flags=re.M)  # the table itself
        return re.sub(r"`[^`\n]*`", blank, text)
    if path.endswith((".py", ".sh")):
        return text
    kept, at = [], 0
    # Comments and string literals; raw strings hold programs.
    for found in re.finditer(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', text, re.S):
        kept.append(re.sub(r"[^\n]", " ", text[at : found.start()]))
        kept.append(blank(found) if found.group().startswith("R") else found.group())
        at = found.end()
    return "".join(kept)


def everything():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return listed.stdout.split()
    found = []  # without git
    for folder, inner, names in os.walk(ROOT):
        inner[:] = sorted(d for d in inner if not d.startswith((".", "bazel-")))
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return found


def main():
    if sorted(listed()) != sorted(PATTERNS):
        sys.exit(f"CONTRIBUTING.md lists {sorted(listed())}, this script looks for {sorted(PATTERNS)}")
    files = sys.argv[1:]
    if not files:
        files = [f for f in everything() if not f.startswith(OTHER_ROOMS)]
    finds = 0
    for path in files:
        if not path.endswith((".cpp", ".h", ".md", ".py", ".sh")) or path == "tools/check_prose.py":
            continue
        try:
            with open(os.path.join(ROOT, path)) as file:
                text = prose(path, file.read())
        except FileNotFoundError:
            continue  # deleted, and git does not know it yet
        # A phrase may go over the end of a line.
        flat = re.sub(r"\n[ \t]*(?://|\*|#)?", lambda m: " " * len(m.group()), text)
        for words, pattern in PATTERNS.items():
            for found in re.finditer(pattern.replace("_", r"\s+"), flat, re.I):
                line = text.count("\n", 0, found.start()) + 1
                print(f"{path}:{line}: “{words}”: {text.splitlines()[line - 1].strip()[:120]}")
                finds += 1
    sys.exit(1 if finds else 0)


main()
