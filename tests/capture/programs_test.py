#!/usr/bin/python3
"""Compares each program of programs/ with what a compiler makes of it.

usage: programs_test.py [--world torch|wick] [--only NAME] [--feature FEATURE] [--compile identity|wick|dynamic]
                        [--backend NAME] [--results] [--tolerance NUMBER] [--instructions] [--digest] [--list] [-v]
                        [--isolate [--seconds NUMBER]]

Prints a table with a line for each feature, then the failures. The exit status is 1 if there are any.
--instructions also checks that the programs execute every instruction of CPython.
--isolate runs the programs in another process, so that a crash or a hang is a failure of one program.
--digest prints a number that is the same in each process if the programs are deterministic.
"""

import argparse
import collections
import dis
import functools
import hashlib
import importlib.util
import sys
import types

import program_runner as runner

# Instructions that no function can execute, or that end a graph always.
NEVER_IN_FUNCTIONS = {
    "CACHE": "is never executed: it is room for an instruction's cache",
    "PRINT_EXPR": "stands only in code that is typed at a prompt",
    "IMPORT_STAR": "is allowed only in the code of a module",
}
BREAKS = {
    "LOAD_BUILD_CLASS": "defining a class runs a class body, which is not a function",
    "DELETE_NAME": "stands only in class bodies and modules",
    "LOAD_NAME": "stands only in class bodies and modules",
    "STORE_NAME": "stands only in class bodies and modules",
    "SETUP_ANNOTATIONS": "stands only in class bodies and modules",
    "LOAD_CLASSDEREF": "stands only in class bodies",
    "ASYNC_GEN_WRAP": "async functions run as plain Python",
    "BEFORE_ASYNC_WITH": "async functions run as plain Python",
    "END_ASYNC_FOR": "async functions run as plain Python",
    "GET_AITER": "async functions run as plain Python",
    "GET_ANEXT": "async functions run as plain Python",
    "GET_AWAITABLE": "async functions run as plain Python",
}


def nested_codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested_codes(constant)


class InstructionTracer:
    """Counts the instructions that functions of the programs execute."""

    def __init__(self):
        self.counts = collections.Counter()
        self.files = set()
        self.tables = {}

    def table(self, code):
        """Offset -> name. Instructions before the one that is traced first are counted at the start."""
        found = self.tables.get(code)
        if found is None:
            found = {i.offset: i.opname for i in dis.get_instructions(code)}
            self.tables[code] = found
        return found

    def __call__(self, frame, event, arg):
        code = frame.f_code
        if code.co_filename not in self.files or code.co_name == "<module>":
            return None
        if event == "call":
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
            for name in self.table(code).values():
                self.counts[name] += 1
                if name == "RESUME":
                    break
        elif event == "opcode":
            self.counts[self.table(code)[frame.f_lasti]] += 1
        return self

    def run(self, world, files):
        for file in files:
            self.files.add(file.path)
            for name in file.names(world):
                runner.Side(world, file, name, self.traced).run()
        return self.counts

    def traced(self, function):
        def call(*args, **kwargs):
            sys.settrace(self)
            try:
                return function(*args, **kwargs)
            finally:
                sys.settrace(None)

        return call


def check_instructions(world, files):
    """The faults of the programs as a set of examples: instructions that they lack."""
    counts = InstructionTracer().run(world, files)
    faults = []
    for name in sorted(dis.opmap):
        if counts[name] and name in NEVER_IN_FUNCTIONS:
            faults.append(f"{name} is executed, though it {NEVER_IN_FUNCTIONS[name]}")
        elif not counts[name] and name not in NEVER_IN_FUNCTIONS:
            faults.append(f"{name}: no program executes it")
    faults += [f"{name} is no instruction" for name in (NEVER_IN_FUNCTIONS | BREAKS) if name not in dis.opmap]
    executed = sum(1 for name in dis.opmap if counts[name])
    print(f"instructions: {executed} of {len(dis.opmap)} are executed, {len(BREAKS)} of them end a graph always, "
          f"{len(NEVER_IN_FUNCTIONS)} cannot stand in a function")
    return faults


class Identity:
    """The compiler that leaves everything to Python."""

    counters = None

    def compile(self, function):
        return function

    def reset(self):
        pass


class WickCompiler:
    """wick.compile."""

    def __init__(self, backend, dynamic):
        import wick

        self.wick = wick
        self.options = {"backend": backend} if backend else {}
        self.options["dynamic"] = dynamic
        self.counters = getattr(wick.compiler, "counters", None)

    def compile(self, function):
        return self.wick.compile(function, **self.options)

    def reset(self):
        self.wick.compiler.reset()


def digest(world, files):
    """A number that depends on all that the programs compute."""
    total = hashlib.sha256()
    for file in files:
        for name in file.names(world):
            side = runner.Side(world, file, name, lambda function: function).run()
            total.update(repr((file.feature, name, side.descriptions)).encode())
    return total.hexdigest()


def print_table(reports, counted):
    columns = ["feature", "programs", "agree"] + (["graphs right", "operators"] if counted else [])
    print("  ".join(f"{title:>12}" for title in columns))
    groups = collections.defaultdict(list)
    for report in reports:
        groups[report.feature].append(report)
    rows = list(groups.items()) + [("all", reports)]
    for feature, group in rows:
        cells = [feature, len(group), sum(r.difference is None for r in group)]
        if counted:
            cells += [sum(r.wrong_graphs is None for r in group), sum(r.operators or 0 for r in group)]
        print("  ".join(f"{cell:>12}" for cell in cells))


def reports_of(world, chosen, compiler, options):
    """Returns a report for each of the programs, which are pairs of a file and a name."""
    def run(file, name):
        if options.verbose:
            print(f"{file.feature}.{name}", flush=True)
        compiler.reset()
        return runner.run_program(world, file, name, compiler.compile, compiler.counters, options.tolerance)

    if not options.isolate:
        return [run(file, name) for file, name in chosen]
    jobs = [functools.partial(run, file, name) for file, name in chosen]
    return list(runner.isolated(jobs, options.seconds,
                                lambda index, reason: runner.Report(chosen[index][0].feature, chosen[index][1], reason)))


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--world", default="torch", choices=("torch", "wick"))
    parser.add_argument("--only", action="append", metavar="NAME", help="programs whose names contain this")
    parser.add_argument("--feature", action="append", choices=runner.feature_files())
    parser.add_argument("--results", action="store_true", help="do not judge the numbers of graphs")
    parser.add_argument("--compile", default="identity", choices=("identity", "wick", "dynamic"))
    parser.add_argument("--backend")
    parser.add_argument("--tolerance", type=float, default=0.0)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--digest", action="store_true")
    parser.add_argument("--isolate", action="store_true")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if options.world == "torch" and importlib.util.find_spec("torch") is None:
        print("skipped: needs Debian's python3-torch")
        return 0
    world = runner.World(options.world)
    files = [runner.ProgramFile(feature) for feature in options.feature or runner.feature_files()]
    if options.digest:
        print(digest(world, files))
        return 0
    compiler = Identity()
    if options.compile != "identity":
        compiler = WickCompiler(options.backend, True if options.compile == "dynamic" else None)
    chosen = []
    for file in files:
        for name, program in file.load(world)[0].items():
            if options.only and not any(part in name for part in options.only):
                continue
            chosen.append((file, name))
            if options.list:
                print(f"{file.feature}.{name}: graphs {program.graphs}{', ' + program.breaks if program.breaks else ''}")
    if options.list:
        return 0
    reports = reports_of(world, chosen, compiler, options)
    print_table(reports, compiler.counters is not None)
    faults = []
    for report in reports:
        for fault in (report.difference, None if options.results else report.wrong_graphs):
            if fault:
                faults.append(f"{report.feature}.{report.name}: {fault}")
    if options.instructions:
        faults += check_instructions(world, files)
    for fault in faults:
        print(fault)
    print(f"{len(reports)} programs, {len(faults)} faults")
    return 1 if faults or not reports else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
