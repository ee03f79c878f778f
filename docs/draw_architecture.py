#!/usr/bin/env python3
"""Draws docs/architecture.svg: the rooms of the house, how large each is, and what it is built on, read from the BUILD files.

usage: docs/draw_architecture.py [--check] [--sizes]
  --check: exit code 1 when the picture has other rooms or arrows than the BUILD files; sizes may be older
  --sizes: print the lines of each room and its share of the code, and draw nothing; exit code 1 when a room has too much of it

An arrow leads from a room to one that it includes; arrows that follow from others are left out. Higher rooms include lower
ones only: a circle is an error.
"""
import collections, html, os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What is drawn as a box of its own, with a few words; packages below it belong to it.
ROOMS = {
    "core": "values, tensors, types, errors",
    "codegen/scalar": "pointwise operators as data",
    "ir": "graphs, operator registry",
    "frontend": "source to graphs",
    "passes": "graph to graph",
    "codegen/loop": "groups of nodes to loops",
    "codegen/llvm": "loops to machine code",
    "codegen/text": "what texts of kernels share",
    "codegen/cpp": "loops to C++",
    "codegen/cuda": "loops to CUDA C",
    "runtime/kernels": "convolution, products, copies",
    "runtime/ops": "operators",
    "runtime/compile_queue": "compiling in the background",
    "runtime/fusion": "running kernels",
    "runtime": "interpreter, executor, modules",
    "runtime/native": "machine code for scalars",
    "runtime/cuda": "CUDA devices",
    "autograd": "gradients",
    "extensions": "operators and classes of applications",
    "serialization": "archives, both ways",
    "tracing": "recording calls as graphs",
    "lazy": "computing as late as possible",
    "distributed": "processes that compute together",
    "training": "optimizers, whole trainings",
    "streams": "models as stages on threads",
    "aot": "models compiled ahead of time",
    "": "wick.h: the interface for C++",
    "capture": "what Python functions compute",
    "capi": "the interface for C",
    "python": "the package for Python",
    "install": "shared libraries",
    "tools": "torchscript-cli",
}
# Libraries of a room that stand below others of it.
BELOW = {
    "runtime:jit_mode": "runtime/compile_queue",
    "capi:header": "extensions",
    "runtime:compile_queue": "runtime/compile_queue",
}
LEFT_OUT = {"tests", "examples", "third_party", "bazel-bin", "bazel-out"}
CODE = (".c", ".cpp", ".h", ".py", ".pyi")
MOST = 0.25  # the share of the code that one room may have


def room_of(package):
    while package not in ROOMS:
        if "/" not in package:
            return None
        package = package.rsplit("/", 1)[0]
    return package


def dependencies(folder, package):
    """What the libraries and programs of one BUILD file depend on, as pairs of rooms."""
    pairs = []

    def room(label):
        place, _, name = label.partition(":")
        return BELOW.get(f"{place}:{name or place.rsplit('/', 1)[-1]}", room_of(place))

    def rule(name="", deps=(), **arguments):
        for label in deps or ():
            if not label.startswith("@"):
                label = package + label if label.startswith(":") else label[2:]
                pairs.append((room(f"{package}:{name}"), room(label)))

    class Names(dict):
        def __missing__(self, name):  # every rule, known or not
            return lambda *positional, **arguments: rule(**arguments)

    names = Names(glob=lambda *a, **k: [], select=lambda cases: [], load=lambda *a, **k: None,
                  WICK_SONAME_VERSION="", True_=True)
    with open(os.path.join(folder, "BUILD")) as file:
        exec(compile(file.read(), folder + "/BUILD", "exec"), names)
    return pairs


def folders():
    """Each folder of ours with its path below the root and the names of its files."""
    for folder, inner, files in os.walk(ROOT):
        inner[:] = sorted(d for d in inner if not d.startswith((".", "bazel-", "__")) and d not in LEFT_OUT)
        path = os.path.relpath(folder, ROOT)
        yield folder, "" if path == "." else path, files


def sizes():
    """Lines of C++ and Python by room; None stands for what is in no room."""
    lines = collections.Counter()
    for folder, path, files in folders():
        for name in files:
            if name.endswith(CODE):
                with open(os.path.join(folder, name), "rb") as file:
                    stem = name.rsplit(".", 1)[0]  # libraries of BELOW are named after their files
                    lines[BELOW.get(f"{path}:{stem}", room_of(path))] += file.read().count(b"\n")
    return lines


def rounded(lines):
    """To the thousand where there are many, otherwise to the hundred."""
    return f"{round(lines, -3 if lines >= 10000 else -2):,} lines" if lines >= 50 else f"{lines} lines"


def without_sizes(picture):
    return re.sub(r"[\d,]+ lines", "lines", picture)


def print_sizes():
    lines = sizes()
    total = sum(lines.values())
    for room, count in lines.most_common():
        name = "(in no room)" if room is None else room + "/" if room else "//:wick"
        print(f"{count:>8,}  {count / total:6.1%}  {name}")
    print(f"{total:>8,}  of C++ and Python, without tests, examples and third_party/")
    largest, count = lines.most_common(1)[0]
    if count > MOST * total:
        sys.exit(f"{largest}/ is {count / total:.1%} of the code, more than {MOST:.0%}")


def edges():
    found = collections.defaultdict(set)
    for folder, package, files in folders():
        if "BUILD" not in files:
            continue
        for room, other in dependencies(folder, package):
            if room is not None and other is not None and other != room:
                found[room].add(other)
    return found


def below(room, found, known):
    """All that a room is built on."""
    if room not in known:
        known[room] = None  # in work
        reached = set()
        for other in found[room]:
            further = below(other, found, known)
            if further is None:
                sys.exit(f"{room} and {other} include each other")
            reached |= {other} | further
        known[room] = reached
    return known[room]


def draw(found, lines):
    known = {}
    for room in ROOMS:
        below(room, found, known)
    direct = {r: {o for o in found[r] if not any(o in known[p] for p in found[r] if p != o)} for r in ROOMS}
    level = {}
    for room in sorted(ROOMS, key=lambda r: len(known[r])):
        level[room] = max((level[o] + 1 for o in direct[room]), default=0)
    # A room that nobody includes stands directly above the highest one that it includes; others as high as they can.
    rows = collections.defaultdict(list)
    for room in ROOMS:
        rows[level[room]].append(room)
    width, height, gap, rise = 208, 62, 20, 100
    columns = max(len(r) for r in rows.values())
    total = columns * (width + gap) + gap
    x, y = {}, {}
    for number in sorted(rows):
        row = rows[number]
        # Near what they stand on, so that arrows are short.
        row.sort(key=lambda r: sum(x[o] for o in direct[r]) / max(1, len(direct[r])) if direct[r] else 0)
        # Rows of one box stand left and right alternately, so that longer arrows pass beside them.
        aside = (width + gap) / 2 * (1 if number % 2 else -1) if len(row) == 1 and 0 < number < max(rows) else 0
        left = (total - len(row) * (width + gap) + gap) / 2 + aside
        for i, room in enumerate(row):
            x[room] = left + i * (width + gap)
            y[room] = (max(rows) - number) * rise + 12
    bottom = (max(rows) + 1) * rise
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {bottom}" '
           'font-family="sans-serif" font-size="13">',
           '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
           '<path d="M0 0 L8 4 L0 8 z" fill="#667"/></marker></defs>',
           '<rect width="100%" height="100%" fill="#fff"/>']
    for room in ROOMS:
        for other in sorted(direct[room]):
            x1, y1 = x[room] + width / 2, y[room] + height
            x2, y2 = x[other] + width / 2, y[other]
            middle = (y1 + y2) / 2
            out.append(f'<path d="M{x1:.0f} {y1:.0f} C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2 - 2:.0f}" '
                       'fill="none" stroke="#99a" stroke-width="1.2" marker-end="url(#tip)"/>')
    for room, words in ROOMS.items():
        color = "#dce9f7" if level[room] < 3 else "#e8f3e0" if level[room] < 7 else "#f8ecd8"
        middle = x[room] + width / 2
        out.append(f'<rect x="{x[room]:.0f}" y="{y[room]:.0f}" width="{width}" height="{height}" rx="6" fill="{color}" '
                   'stroke="#556"/>')
        out.append(f'<text x="{middle:.0f}" y="{y[room] + 19:.0f}" text-anchor="middle" font-weight="bold">'
                   f'{html.escape(room + "/" if room else "//:wick")}</text>')
        out.append(f'<text x="{middle:.0f}" y="{y[room] + 36:.0f}" text-anchor="middle" fill="#333">{html.escape(words)}</text>')
        if lines[room]:
            out.append(f'<text x="{middle:.0f}" y="{y[room] + 53:.0f}" text-anchor="middle" fill="#667" font-size="12">'
                       f'{rounded(lines[room])}</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    if "--sizes" in sys.argv:
        print_sizes()
        return
    picture = draw(edges(), sizes())
    path = os.path.join(ROOT, "docs", "architecture.svg")
    if "--check" in sys.argv:
        with open(path) as file:
            if without_sizes(file.read()) != without_sizes(picture):
                sys.exit("docs/architecture.svg is not up to date: run docs/draw_architecture.py")
        return
    with open(path, "w") as file:
        file.write(picture)


main()
