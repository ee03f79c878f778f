"""Loads the files of programs/ and runs a program twice: plainly, and as a compiler makes it."""

import contextlib
import dataclasses
import importlib
import io
import marshal
import os
import pickle
import random
import signal
import traceback
import types

import compare

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


@dataclasses.dataclass
class Arguments:
    """The arguments of a call with keywords."""

    args: tuple
    kwargs: dict


@dataclasses.dataclass
class Program:
    """A function of a file, and how it is called."""

    function: object
    calls: list  # functions without arguments that return a tuple, or Arguments
    graphs: int  # captured by the first call; None if the number says nothing
    breaks: str  # the reason if one graph cannot be had
    setup: object  # called once before the calls
    between: dict  # number of a call -> function that is called before it
    check: object  # returns state that is compared after each call
    use: object  # takes the result; it is not compiled
    makes: bool  # the function returns the callable
    backward: bool  # gradients of the results are computed after each call
    raises: str  # the exception that calls of the plain function may end with
    tolerance: float

    @property
    def name(self):
        return self.function.__name__


class World:
    """The names that programs are written against."""

    def __init__(self, name):
        self.name = name
        if name == "torch":
            self.torch = importlib.import_module("torch")
            importlib.import_module("torch.nn.functional")
        elif name == "wick":
            self.torch = importlib.import_module("wick.torch")
        else:
            raise ValueError(f"world: torch or wick is expected, found {name}")
        self.nn = self.torch.nn
        self.F = self.nn.functional

    def seed(self, number):
        random.seed(number)
        self.torch.manual_seed(number)

    def state(self):
        """The state of the thread that a call must leave as plain Python leaves it."""
        torch = self.torch
        return {
            "random": hash(random.getstate()),
            "generator": torch.get_rng_state(),
            "gradients": torch.is_grad_enabled(),
            "dtype": str(torch.get_default_dtype()),
        }

    def restore(self):
        """Puts modes back that a failed program may have left."""
        torch = self.torch
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)


def feature_files(folder=FOLDER):
    return sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py"))


class ProgramFile:
    """One file of programs. Each load gives new code objects, functions, classes and globals."""

    def __init__(self, feature, folder=FOLDER):
        self.feature = feature
        self.path = os.path.join(folder, feature + ".py")
        with open(self.path) as file:
            self.bytes = marshal.dumps(compile(file.read(), self.path, "exec", dont_inherit=True))

    def load(self, world):
        programs = {}
        module = types.ModuleType(compare.OWN_PACKAGE + self.feature)

        def program(calls, *, graphs=1, breaks=None, setup=None, between=None, check=None, use=None, makes=False,
                    backward=False, raises=None, tolerance=0.0, worlds=("torch", "wick")):
            def register(function):
                expected = graphs.get(world.name) if isinstance(graphs, dict) else graphs
                if world.name not in worlds:
                    return function
                if function.__name__ in programs:
                    raise ValueError(f"{self.path}: there are two programs {function.__name__}")
                if graphs != 1 and not breaks:
                    raise ValueError(f"{self.path}: {function.__name__} needs a reason for its graphs")
                listed = list(calls) if isinstance(calls, (list, tuple)) else [calls] * 3
                programs[function.__name__] = Program(function, listed, expected, breaks, setup, between or {}, check, use,
                                                      makes, backward, raises, tolerance)
                return function

            return register

        def given(*shapes):
            """A call with random tensors of these shapes; all but tuples are arguments themselves."""
            return lambda: tuple(world.torch.randn(s) if isinstance(s, tuple) else s for s in shapes)

        def arguments(*args, **kwargs):
            return Arguments(args, kwargs)

        injected = {
            "torch": world.torch, "nn": world.nn, "F": world.F, "program": program, "given": given,
            "arguments": arguments, "__file__": self.path,
        }
        module.__dict__.update(injected)
        exec(marshal.loads(self.bytes), module.__dict__)
        return programs, module

    def names(self, world):
        return list(self.load(world)[0])


def globals_of(module):
    """The globals that are compared: all but those that begin with an underscore."""
    hidden = {"torch", "nn", "F", "program", "given", "arguments"}
    return {name: value for name, value in module.__dict__.items() if name not in hidden and not name.startswith("_")}


def version_of(tensor):
    """The number of writes to a tensor's memory, if that is counted."""
    try:
        return tensor._version
    except (AttributeError, RuntimeError):
        return None


def weighted_sum(world, tensors):
    """A number whose gradient differs for each element."""
    total = None
    for tensor in tensors:
        weights = world.torch.arange(1, tensor.numel() + 1, dtype=tensor.dtype).reshape(tensor.shape)
        part = (tensor * weights).sum()
        total = part if total is None else total + part
    return total


class Side:
    """One run of a program: its file is loaded anew, and its calls are made in turn."""

    def __init__(self, world, file, name, compiler):
        self.world = world
        self.programs, self.module = file.load(world)
        self.program = self.programs[name]
        self.compiler = compiler
        self.descriptions = []
        self.outcomes = []
        self.failed = []
        self.arguments = []

    def run(self, after_first=None):
        """Makes all calls; `after_first` is called behind the first one."""
        self.world.seed(1)
        try:
            if self.program.setup:
                self.program.setup()
            function = self.program.function() if self.program.makes else self.program.function
            compiled = self.compiler(function)
            for index, call in enumerate(self.program.calls):
                self.world.seed(1000 + index)
                if index in self.program.between:
                    self.program.between[index]()
                made = call()
                if not isinstance(made, Arguments):
                    made = Arguments(made, {})
                self.call(index, compiled, made)
                if index == 0 and after_first:
                    after_first()
            self.describe_all()
        finally:
            self.world.restore()
        return self

    def call(self, index, compiled, made):
        world = self.world
        before = compare.Describer(world.torch.Tensor)
        before.describe("", (made.args, made.kwargs))
        versions = [(tensor, version_of(tensor)) for tensor in before.tensors]
        world.seed(2000 + index)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                outcome = compiled(*made.args, **made.kwargs)
                state = world.state()
                if self.program.use:
                    outcome = (outcome, self.program.use(outcome))
                raised = None
            except (SystemExit, GeneratorExit, Exception) as error:
                state = world.state()
                outcome, raised = None, error.with_traceback(None)
        world.restore()
        after = compare.Describer(world.torch.Tensor)
        if self.program.backward and raised is None:
            self.backward(outcome)
        after.describe("result", outcome)
        after.describe("raised", raised)
        after.describe("args", made.args)
        after.describe("kwargs", made.kwargs)
        after.describe("written", [version_of(tensor) != version for tensor, version in versions])
        after.describe("printed", printed.getvalue())
        after.describe("state", state)
        if self.program.check:
            after.describe("check", self.program.check())
        self.descriptions.append((f"call {index + 1}", after.facts))
        self.outcomes.append(outcome if raised is None else raised)
        self.failed.append(raised is not None)
        self.arguments.append((made.args, made.kwargs))

    def backward(self, outcome):
        found = compare.Describer(self.world.torch.Tensor)
        found.describe("", outcome)
        total = weighted_sum(self.world, [tensor for tensor in found.tensors if tensor.grad_fn is not None])
        if total is None:
            raise ValueError(f"{self.program.name}: no result needs gradients")
        total.backward()

    def describe_all(self):
        """Describes results, arguments and globals together: how they are related is seen here."""
        whole = compare.Describer(self.world.torch.Tensor)
        whole.describe("results", self.outcomes)
        whole.describe("arguments", self.arguments)
        whole.describe("globals", globals_of(self.module))
        self.descriptions.append(("all calls", whole.facts))


@dataclasses.dataclass
class Report:
    """The result of comparing."""

    feature: str
    name: str
    difference: str  # None if both sides agree
    graphs: int = None  # captured by the first call, if it was counted
    operators: int = None
    wrong_graphs: str = None


def difference_between(plain, other, tolerance):
    for (title, expected), (_, found) in zip(plain.descriptions, other.descriptions):
        difference = compare.first_difference(expected, found, tolerance)
        if difference:
            return f"{title}: {difference}"
    return None


def wrong_exceptions(side):
    """Says which exceptions a plain run ended with that the program does not name: it would test nothing."""
    raised = {type(outcome).__name__ for outcome, failed in zip(side.outcomes, side.failed) if failed}
    named = {side.program.raises} if side.program.raises else set()
    if raised == named:
        return None
    return f"plain calls raise {sorted(raised) or 'nothing'}, expected {sorted(named) or 'nothing'}: {side.outcomes}"[:300]


def run_all_of(jobs, writer, seconds):
    """Ends the process after it has called the jobs and written their results."""
    try:
        with os.fdopen(writer, "wb") as file:
            for job in jobs:
                signal.alarm(seconds)
                pickle.dump(job(), file)
                file.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def results_in(file):
    while True:
        try:
            yield pickle.load(file)
        except (EOFError, pickle.UnpicklingError):
            return


def isolated(jobs, seconds, on_death):
    """Calls the jobs in a process of their own and yields their results.

    If the process dies, the result is on_death(index of the job, reason), and the next process goes on behind it.
    """
    done = 0
    while done < len(jobs):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            run_all_of(jobs[done:], writer, seconds)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            for result in results_in(file):
                done += 1
                yield result
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if done == len(jobs):
            return
        if status == -signal.SIGALRM:
            reason = f"takes more than {seconds} seconds"
        else:
            reason = f"the process dies by {signal.Signals(-status).name}" if status < 0 else "the process ends"
        yield on_death(done, reason)
        done += 1


def plain_run(world, file, name):
    return Side(world, file, name, lambda function: function).run()


def run_program(world, file, name, compiler, counters=None, tolerance=0.0, plain=None):
    """Compares a program with what `compiler` makes of it. `counters` has graph_count and op_count, which only grow.

    `plain` is a run of plain_run() if there was one already.
    """
    try:
        plain = plain or plain_run(world, file, name)
    except Exception as error:
        return Report(file.feature, name, f"the plain run fails outside of calls: {type(error).__name__}: {error}")
    report = Report(file.feature, name, wrong_exceptions(plain))
    if report.difference:
        return report
    start = (counters.graph_count, counters.op_count) if counters else None

    def count():
        if counters:
            report.graphs = counters.graph_count - start[0]
            report.operators = counters.op_count - start[1]

    try:
        other = Side(world, file, name, compiler).run(count)
    except Exception as error:  # outside of calls: a compiler that refuses, or wrong arguments
        report.difference = f"{type(error).__name__} outside of calls: {error}"
        return report
    report.difference = difference_between(plain, other, max(tolerance, plain.program.tolerance))
    expected = plain.program.graphs
    if report.graphs is not None and expected is not None and report.graphs != expected:
        report.wrong_graphs = f"expected {expected} graphs in the first call, captured {report.graphs}"
        if plain.program.breaks:
            report.wrong_graphs += f" ({plain.program.breaks})"
    return report
