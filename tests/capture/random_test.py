"""Compares random functions with tensors, run as plain Python and compiled.

usage: random_test.py [--world torch|wick] [--compile NAME] [--count N] [--seed S] [--program SEED] [--show] [--jobs N]
                      [--tolerance X] [--no-reduce] [--self-test]

--compile takes identity, wick, dynamic, wick:BACKEND, or one of the wrong compilers of random_wrong.py. --program runs one program and prints it,
--show prints its source alone. --self-test shows that each wrong compiler is found. Programs run in processes of their own,
so a crash and a program that never ends are reported as differences, too.

Each side runs in a fresh module, with arguments of its own, five times (random_functions.py). Compared are results,
exceptions with their lines, arguments, globals, printed text, gradients and the gradient mode (outcome.py). On a difference the
program is reduced. In the end the counts of instructions, operators, names and types show what the programs held: each
instruction and kind of value is expected in 100 of 20,000 programs, and the rarer ones are listed.
"""

import argparse
import collections
import dis
import functools
import linecache
import marshal
import multiprocessing
import os
import pprint
import signal
import sys
import time
import traceback
import types
import warnings

import outcome
import random_functions
import random_reduce
import random_wrong

LONGEST_CALL = 4        # seconds of the processor
LONGEST_PROGRAM = 60    # seconds until a process that does not answer is ended
HIDDEN = frozenset(["torch", "CALLS", "f", "GX", "Point", "Color", "Record"])
MOST_REDUCTIONS = 10    # in each process
EXPECTED_IN = 0.005     # of the programs
# Instructions that no function contains, and why.
IMPOSSIBLE = {"PRINT_EXPR": "is made for the interactive prompt alone", "IMPORT_STAR": "is legal in modules alone"}
NAMES = """len sum min max any all sorted map filter reversed zip enumerate range iter next isinstance issubclass type getattr
setattr delattr hasattr callable divmod round abs int float bool str bytes bytearray memoryview list tuple dict set frozenset
complex slice super property staticmethod classmethod deque OrderedDict defaultdict Counter partial reduce wraps lru_cache
cached_property chain product islice count cycle accumulate groupby zip_longest repeat add mul truediv itemgetter setitem copy
deepcopy no_grad enable_grad set_grad_enabled nullcontext suppress ExitStack shape size dim dtype device item tolist nonzero
append extend insert pop remove reverse sort clear update setdefault popitem get items values keys discard appendleft popleft
rotate extendleft move_to_end send throw close __dict__ __class__ __code__ __defaults__ Point Record Color ExceptionGroup globals
locals exec eval vars print format join split replace gcd isqrt sqrt cast ref add_ mul_ copy_ fill_ zero_ clamp_ masked_fill_ where
stack cat reshape view t transpose permute sum amax mean cumsum matmul backward requires_grad_ Module""".split()
# Types of values in results, arguments, globals, and in what they hold.
VALUES = """Tensor|tensor of torch.float32|tensor of torch.float64|tensor of torch.int64|tensor of torch.int32|tensor of torch.bool
tensor that requires a gradient|dtype|Size|device|int|float|bool|str|bytes|bytearray|complex|NoneType|ellipsis|NotImplementedType|list
tuple|dict|set|frozenset|deque|range|slice|OrderedDict|defaultdict|Counter|function|cell|method|builtin_function_or_method|partial
generator|list_iterator|enumerate|module|type|property|itemgetter|ValueError|object of a user's class""".replace("\n", "|").split("|")


class TooLong(BaseException):
    """A call ran for longer than LONGEST_CALL."""


class Setting:
    """The tensors that programs use, the compiler, and by how much floats may differ."""

    def __init__(self, world, compiler, tolerance=0.0):
        self.tolerance = tolerance
        if world == "wick":
            try:
                from wick import torch as module
            except ImportError as error:
                sys.exit(f"{error}: put the built package on PYTHONPATH")
        else:
            import torch as module
            module.set_num_threads(1)
        self.world = module
        if compiler == "identity":
            self.compile = random_wrong.identity
        elif compiler == "dynamic":
            import wick
            self.compile = functools.partial(wick.compile, dynamic=True)
        elif compiler.partition(":")[0] == "wick":
            import wick
            backend = compiler.partition(":")[2] or "wick"
            self.compile = functools.partial(wick.compile, backend=backend)
        elif compiler in random_wrong.COMPILERS:
            self.compile = random_wrong.COMPILERS[compiler]
        else:
            sys.exit(f"no compiler '{compiler}': identity, wick, dynamic, wick:BACKEND, {', '.join(random_wrong.COMPILERS)}")


def on_alarm(*_):
    raise TooLong


def guarded_outcome(side, function, index, seen=None):
    """Makes the call of this index: changes, arguments, call. Returns its outcome."""
    change, arguments = side.globals["CALLS"][index]
    signal.setitimer(signal.ITIMER_PROF, LONGEST_CALL, 0.5)
    try:
        if change is not None:
            change()
        positions, keywords = arguments()
        return outcome.outcome_of(side, function, positions, keywords, HIDDEN, seen)
    except TooLong:
        return {"exception": ("ran too long",)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Comparison:
    """One program, run on both sides."""

    def __init__(self, source, name, setting, seen=None):
        self.filename = f"<random {name}>"
        self.code = compile(source, self.filename, "exec")
        linecache.cache[self.filename] = (len(source), None, source.splitlines(True), self.filename)
        self.difference = None
        self.plain_outcomes = []
        held = marshal.dumps(self.code)
        plain = outcome.Module(self.code, self.filename, setting.world)
        other = outcome.Module(marshal.loads(held), self.filename, setting.world)
        try:
            compiled = setting.compile(other.globals["f"])
        except Exception as error:
            self.difference = (0, ("compiler", None, traceback.format_exception(error)), None, None)
            return
        for index in range(len(plain.globals["CALLS"])):
            mine = guarded_outcome(plain, plain.globals["f"], index, seen)
            setting.world.set_grad_enabled(True)
            its = guarded_outcome(other, compiled, index)
            setting.world.set_grad_enabled(True)
            self.plain_outcomes.append(mine)
            found = outcome.first_difference(mine, its, setting.tolerance)
            if found:
                self.difference = (index, found, mine, its)
                break
        linecache.cache.pop(self.filename, None)

    @property
    def part(self):
        """The part of the outcome that differs."""
        return self.difference[1][0].split(".")[0]


def codes_in(code):
    """Yields the code objects of the functions in a module's code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from codes_in(constant)


class Counts:
    """In how many programs each instruction, operator, name and type occurs, and what became of the calls."""

    def __init__(self):
        self.instructions = collections.Counter()
        self.operators = collections.Counter()
        self.names = collections.Counter()
        self.types = collections.Counter()
        self.unintended = collections.Counter()
        self.programs = self.raising = self.failing = self.calls = self.bytes = 0

    def add(self, program, comparison, seen):
        instructions, names = set(), set()
        for code in codes_in(comparison.code):
            text = code.co_code
            instructions.update(zip(text[::2], text[1::2]))
            names.update(code.co_names)
        self.instructions.update({opcode for opcode, _ in instructions})
        self.operators.update([argument for opcode, argument in instructions if opcode == dis.opmap["BINARY_OP"]])
        self.names.update(names)
        self.types.update({kind if type(kind) is str else "object of a user's class" if kind.__module__ == "program" else
                           kind.__qualname__ for kind in seen})
        self.programs += 1
        self.bytes += len(program.source)
        raised = unintended = None
        for part in comparison.plain_outcomes:
            self.calls += 1
            error = part["exception"]
            if error is not None:
                raised = error
                if not self.meant(error, program):
                    unintended = error
        self.raising += raised is not None
        if unintended:
            self.failing += 1
            self.unintended[f"{unintended[0]}: {unintended[2] if len(unintended) > 2 else ''}"[:90]] += 1

    def meant(self, error, program):
        if len(error) < 3:
            return False
        return "on purpose" in error[2] or error[0].startswith("Error") or any(line in program.intended for _, line in error[4])

    def merge(self, other):
        for name, value in vars(other).items():
            if isinstance(value, collections.Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    def rare(self):
        """Returns lines that name what occurs too seldom."""
        least = EXPECTED_IN * self.programs
        lines = []
        for name, opcode in sorted(dis.opmap.items()):
            if self.instructions[opcode] < least and name not in IMPOSSIBLE:
                lines.append(f"instruction {name}: {self.instructions[opcode]}")
        for argument, (name, _) in enumerate(dis._nb_ops):
            if self.operators[argument] < least:
                lines.append(f"operator {name}: {self.operators[argument]}")
        lines += [f"name {name}: {self.names[name]}" for name in NAMES if self.names[name] < least]
        lines += [f"value {name}: {self.types[name]}" for name in VALUES if self.types[name] < least]
        return lines

    def report(self):
        print(f"{self.programs} programs, {self.calls} calls, {self.bytes // max(1, self.programs)} bytes of source each; "
              f"{self.raising} programs raise in a call, {self.failing} ({100 * self.failing / max(1, self.programs):.1f}%) without intent")
        rare = self.rare()
        print("".join(f"{name} {reason}\n" for name, reason in IMPOSSIBLE.items()), end="")
        print(f"occur in fewer than {EXPECTED_IN:.1%} of the programs: {len(rare)}" + "".join(f"\n    {line}" for line in rare))


def described(difference):
    index, (path, mine, its), plain, compiled = difference
    lines = [f"call {index + 1} differs at {path}", "plain:    " + pprint.pformat(mine, width=130)[:1500],
             "compiled: " + pprint.pformat(its, width=130)[:1500]]
    if plain is not None:
        part = path.split(".")[0]
        lines += [f"whole {part}, plain:    {str(plain.get(part))[:1500]}", f"whole {part}, compiled: {str(compiled.get(part))[:1500]}"]
    return "\n".join(lines)


def outcome_in_child(source, name, setting):
    """Compares in a process of its own. Returns the part that differs, "nothing", "error", or "crash"."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        answer = "error"
        try:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            comparison = Comparison(source, name, setting)
            answer = comparison.part if comparison.difference else "nothing"
        except BaseException:
            pass
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer or "crash"


def reduced(source, name, setting, part):
    """Returns a smaller program whose outcomes differ in the same part. Only for crashes each try has its own process."""
    def differs(text):
        if part == "crash":
            return outcome_in_child(text, name, setting) == part
        try:
            comparison = Comparison(text, name, setting)
        except BaseException:
            return False
        return comparison.difference is not None and comparison.part == part

    return random_reduce.Reducer(source, differs).run()


def run_range(seeds, options, setting, connection, current):
    """Runs programs in a child process, and sends what it finds."""
    signal.signal(signal.SIGPROF, on_alarm)
    counts = Counts()
    reductions = MOST_REDUCTIONS if options.reduce else 0
    parent = os.getppid()
    for seed in seeds:
        if os.getppid() != parent:
            return  # it was ended
        current.value = seed
        seen = collections.Counter()
        try:
            program = random_functions.generate(seed)
            comparison = Comparison(program.source, seed, setting, seen)
        except BaseException:
            connection.send(("broken", seed, traceback.format_exc()))
            continue
        counts.add(program, comparison, seen)
        if counts.programs == 200:  # a crash loses the counts that were not sent
            connection.send(("counts", None, counts))
            counts = Counts()
        if comparison.difference:
            connection.send(("difference", seed, described(comparison.difference)))
            if reductions > 0:
                reductions -= 1
                connection.send(("reduced", seed, reduced(program.source, seed, setting, comparison.part)))
    connection.send(("counts", None, counts))
    connection.close()


class Worker:
    """A process with a range of seeds. After a crash another one takes the rest of them."""

    def __init__(self, seeds, options, setting):
        self.options, self.setting = options, setting
        self.start(seeds)

    def start(self, seeds):
        self.seeds = seeds
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe(duplex=False)
        self.current = context.Value("q", seeds[0], lock=False)
        self.process = context.Process(target=run_range, args=(seeds, self.options, self.setting, theirs, self.current))
        self.process.start()
        theirs.close()
        self.last, self.since = None, time.monotonic()

    def messages(self):
        """Yields what came; sets `done` at the end."""
        self.done = False
        try:
            while self.connection.poll(0.05):
                yield self.connection.recv()
        except EOFError:
            self.process.join()
            self.done = True
            if self.process.exitcode != 0:
                seed = self.current.value
                yield ("crash", seed, f"exit status {self.process.exitcode}")
                rest = [other for other in self.seeds if other > seed]
                if rest:
                    self.start(rest)
                    self.done = False
            return
        if self.current.value != self.last:
            self.last, self.since = self.current.value, time.monotonic()
        elif time.monotonic() - self.since > LONGEST_PROGRAM * (10 if self.options.reduce else 1):
            self.process.kill()


def run_many(options, setting, quiet=False):
    """Runs all programs. Returns (counts, failures)."""
    seeds = list(range(options.seed, options.seed + options.count))
    share = (len(seeds) + options.jobs - 1) // options.jobs
    workers = [Worker(seeds[start:start + share], options, setting) for start in range(0, len(seeds), share)]
    counts, failures = Counts(), []
    while workers:
        for worker in list(workers):
            for kind, seed, text in worker.messages():
                if kind == "counts":
                    counts.merge(text)
                    continue
                if kind != "reduced":
                    failures.append((kind, seed))
                if not quiet:
                    print(f"==== {kind}, program {seed} (all of it: --program {seed})\n{text}", flush=True)
                if options.first:
                    for other in workers:
                        other.process.kill()
                    return counts, failures
            if worker.done:
                workers.remove(worker)
    return counts, failures


def run_one(seed, options, setting):
    program = random_functions.generate(seed)
    print(program.source)
    if options.show:
        return 0
    part = outcome_in_child(program.source, seed, setting)
    print(f"==== differs: {part}")
    if part == "nothing":
        return 0
    if part not in ("crash", "error"):
        print(described(Comparison(program.source, seed, setting).difference))
    if options.reduce:
        print("reduced:\n" + reduced(program.source, seed, setting, part))
    return 1


def check_forms(setting):
    """Checks that forms tell apart what a program can tell apart, and nothing else."""
    torch = setting.world

    def form(make):
        return outcome.Former(torch, "", "program").form(make())

    def shared(values):
        return [values, values]

    def cells(value):
        return lambda: value

    def tensor():
        return torch.tensor([[1.0, 2.0], [3.0, 4.0]])

    def view(of):
        made = of()
        return [made, made[0]]

    equal = (lambda: float("nan"), lambda: [1, (2, "a"), {"k": None}], tensor, lambda: shared([1]), lambda: view(tensor),
             lambda: (value for value in (1, 2)), lambda: {3, 1, 2}, lambda: cells([1]), lambda: iter([1, 2]), lambda: slice(1, 2))
    different = (
        (lambda: True, lambda: 1), (lambda: 1, lambda: 1.0), (lambda: 0.0, lambda: -0.0), (lambda: [1], lambda: (1,)),
        (lambda: shared([1]), lambda: [[1], [1]]), (lambda: shared((1,)), lambda: [(1,), tuple([1])]),
        (lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1}), (tensor, lambda: tensor().double()),
        (tensor, lambda: tensor().t().contiguous().t()), (lambda: view(tensor), lambda: [tensor(), tensor()[0]]),
        (lambda: shared(tensor()), lambda: [tensor(), tensor()]), (lambda: torch.tensor(0.0), lambda: torch.tensor(-0.0)),
        (tensor, lambda: tensor().requires_grad_()), (lambda: iter([1, 2]), lambda: iter([1, 3])), (lambda: "a", lambda: b"a"),
        (lambda: collections.deque([1]), lambda: collections.deque([1], 2)), (lambda: ValueError("a"), lambda: ValueError("b")),
        (lambda: torch.tensor([1]), lambda: torch.tensor([1], dtype=torch.int32)), (lambda: {1}, lambda: frozenset([1])),
        (lambda: collections.OrderedDict(a=1), lambda: {"a": 1}), (lambda: tensor()[0], lambda: tensor()[0].clone()[:1]),
    )
    # Pairs of texts, and whether a tolerance of 1e-6 lets them pass.
    texts = (("[1.0000001, 2]", "[1.0, 2]", True), ("1.00001", "1.0", False), ("2", "3", False), ("0.0", "-0.0", False),
             ("1e-9", "1.0000001e-09", True), ("[1.0]", "[1.0, 1.0]", False), ("nan", "1.0", False))
    return [f"{number} of the equal values" for number, make in enumerate(equal) if form(make) != form(make)] + \
        [f"{number} of the different values" for number, (one, two) in enumerate(different) if form(one) == form(two)] + \
        [f"{one} beside {two}" for one, two, close in texts if outcome.is_close(one, two, 1e-6) != close]


def self_test(options):
    """Shows that each wrong compiler is found, and prints after how many programs."""
    options.first, options.reduce = True, False
    missed = check_forms(Setting(options.world, "identity"))
    print(f"forms that are wrong: {missed}")
    wrong = len(missed)
    for name in random_wrong.COMPILERS:
        _, failures = run_many(options, Setting(options.world, name), quiet=True)
        expected = "crash" if name == "crashes" else "difference"
        differences = [seed for kind, seed in failures if kind == expected]
        print(f"{name}: " + (f"found by program {differences[0]}" if differences else f"MISSED {failures}"), flush=True)
        if not differences:
            missed.append(name)
    print(f"{len(random_wrong.COMPILERS) - len(missed) + wrong} of {len(random_wrong.COMPILERS)} wrong compilers are found")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", choices=("torch", "wick"), default="torch")
    parser.add_argument("--compile", default="identity")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", type=int)
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative, of floats; sums in another order differ")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-reduce", dest="reduce", action="store_false")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true", help="as other tests; says nothing more")
    parser.add_argument("--errors", action="store_true", help="print the exceptions that no program meant to raise")
    options = parser.parse_args()
    options.first = False
    signal.signal(signal.SIGPROF, on_alarm)
    warnings.simplefilter("ignore")  # "1 is a literal", and the like
    if options.self_test:
        return self_test(options)
    setting = Setting(options.world, options.compile, options.tolerance)
    if options.program is not None:
        return run_one(options.program, options, setting)
    start = time.monotonic()
    counts, failures = run_many(options, setting)
    seconds = time.monotonic() - start
    counts.report()
    if options.errors:
        for text, number in counts.unintended.most_common(60):
            print(f"    {number} {text}")
    print(f"{len(failures)} differences, {options.count / seconds:.0f} programs a second")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
