#!/usr/bin/env python3
"""Finds words in comments, messages and documents that CONTRIBUTING.md asks to avoid.

usage: tools/check_prose.py [FILE...]        (without files: everything that git knows, and the subjects of commits)
       tools/check_prose.py --update         (lowers the counts in tools/prose_counts.txt to those of today)

Prints one line for each find, and ends with exit code 1 when there is any. Two habits are counted instead: sentences that
begin with an unusual word, and "what is" where no question is meant. tools/prose_counts.txt says how many a file may have.
A file that is not listed may have none, and a count only falls: --update never raises one. If a file has more, all of its
sentences are listed. After a file was renamed or taken apart, change its line by hand.
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
# The habits that are counted, in the order of the columns of prose_counts.txt. Questions are not.
COUNTED = {
    "begins with": r"(?<![\w.'`:/-])(?-i:Of|What|Where|Those|Whoever|Behind|Beside)(?=_[\w`'\"(])(?![^.?!]*\?)",
    "what is": r"(?<![\w.'`:/-])(?-i:what)_(?:is|was|has|had|were)\b(?![^.?!]*\?)",
}
COUNTS = "tools/prose_counts.txt"
OTHER_ROOMS = ("third_party/",)  # not ours
EXAMPLES = ("tools/check_prose.py", "tests/tools/check_prose_test.py")  # they hold the words
# Subjects of the commits after this one are "area: verb object" in at most 72 characters.
BASE_COMMIT = "b27f32a63b584074c675a1f0f7df81fcef0ea629"
SUBJECT = re.compile(r"[a-z][\w./-]*(?:, [a-z][\w./-]*)*: [a-z]\S* \S.*[^.\s]")


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


def readings(path, text):
    """The prose of a file with its length and its ends of lines kept, as it stands and as one line."""
    text = prose(path, text)
    # A phrase may go over the end of a line.
    return text, re.sub(r"\n[ \t]*(?://|\*|#)?", lambda m: " " * len(m.group()), text)


def finds(patterns, path, text):
    """For each name in `patterns` the list of (line, the line's text)."""
    text, flat = readings(path, text)
    lines = text.split("\n")
    found = {}
    for words, pattern in patterns.items():
        at = [text.count("\n", 0, m.start()) for m in re.finditer(pattern.replace("_", r"\s+"), flat, re.I)]
        found[words] = [(line + 1, " ".join(lines[line].split())[:120]) for line in at]
    return found


def allowed_counts(root):
    """The table of counts: path -> one count for each of COUNTED."""
    allowed = {}
    with open(os.path.join(root, COUNTS)) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                path, *counts = line.split()
                allowed[path] = [int(n) for n in counts]
    return allowed


def write_counts(root, allowed):
    with open(os.path.join(root, COUNTS), "w") as file:
        file.write(f"# Written by tools/check_prose.py --update: path, then the counts of {', '.join(map(repr, COUNTED))}.\n")
        for path, counts in sorted(allowed.items()):
            if any(counts):
                file.write(f"{path} {' '.join(map(str, counts))}\n")


def check(root, files, update=False):
    """The faults of these files, as lines of text. `update` lowers the table of counts, of all files."""
    allowed, today, faults, fallen = allowed_counts(root), {}, [], []
    for path in files:
        if not path.endswith((".cpp", ".h", ".md", ".py", ".sh")) or path in EXAMPLES:
            continue
        try:
            with open(os.path.join(root, path)) as file:
                text = file.read()
        except FileNotFoundError:
            continue  # deleted, and git does not know it yet
        for words, found in finds(PATTERNS, path, text).items():
            faults += [f"{path}:{line}: “{words}”: {sentence}" for line, sentence in found]
        counted = finds(COUNTED, path, text)
        today[path] = [len(found) for found in counted.values()]
        limits = allowed.get(path, [0] * len(COUNTED))
        for (words, found), limit in zip(counted.items(), limits):
            if len(found) > limit:
                faults.append(f"{path}: {len(found)} times “{words}”, allowed are {limit}:")
                faults += [f"{path}:{line}: “{words}”: {sentence}" for line, sentence in found]
        if any(n < limit for n, limit in zip(today[path], limits)):
            fallen.append(path)
    if update:
        write_counts(root, {path: [min(n, limit) for n, limit in zip(today[path], limits)]
                            for path, limits in allowed.items() if path in today})
    elif fallen:
        print(f"better than {COUNTS} in {', '.join(fallen)}: tools/check_prose.py --update lowers the counts")
    return faults


def wrong_subjects(root, base):
    """The commits after `base` whose subject has another form; none without git or without that commit."""
    known = subprocess.run(["git", "log", "--no-merges", "--format=%h %s", f"{base}..HEAD"], cwd=root, capture_output=True,
                           text=True)
    faults = []
    for line in known.stdout.splitlines() if known.returncode == 0 else []:
        commit, _, subject = line.partition(" ")
        if len(subject) > 72:
            faults.append(f"commit {commit}: the subject has {len(subject)} characters, more than 72: {subject}")
        elif not SUBJECT.fullmatch(subject):
            faults.append(f"commit {commit}: the subject is not \"area: verb object\": {subject}")
    return faults


def main():
    if sorted(listed()) != sorted(PATTERNS):
        sys.exit(f"CONTRIBUTING.md lists {sorted(listed())}, this script looks for {sorted(PATTERNS)}")
    update = sys.argv[1:] == ["--update"]
    files = [] if update else sys.argv[1:]
    everywhere = not files
    if everywhere:
        files = [f for f in everything() if not f.startswith(OTHER_ROOMS)]
    faults = check(ROOT, files, update)
    if everywhere:
        faults += wrong_subjects(ROOT, BASE_COMMIT)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
