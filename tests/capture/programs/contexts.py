"""Context managers."""

import contextlib

EVENTS = []


class Recorder:
    def __init__(self, name, swallow=False):
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        EVENTS.append(("enter", self.name))
        return self

    def __exit__(self, kind, error, trace):
        EVENTS.append(("exit", self.name, kind and kind.__name__, str(error)))
        return self.swallow


@contextlib.contextmanager
def scaled(state, factor):
    state["scale"] *= factor
    try:
        yield state["scale"]
    finally:
        state["scale"] /= factor


@program(given((3,)))
def no_gradients(x):
    x.requires_grad_(True)
    with torch.no_grad():
        y = x * 2
    z = x * 3
    return y, z, torch.is_grad_enabled()


@program([lambda: (torch.randn(3, requires_grad=True),)])
def nested_gradient_modes(x):
    with torch.no_grad():
        a = x + 1
        with torch.enable_grad():
            b = x + 2
            with torch.set_grad_enabled(False):
                c = x + 3
        d = x + 4
    return a, b, c, d, x * 5


@program(lambda: (torch.randn(3, requires_grad=True),))
def gradient_mode_by_call(x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(before)
    return y, x * 3


@program(lambda: (torch.randn(3, requires_grad=True),))
def gradient_mode_stays_changed(x):
    torch.set_grad_enabled(False)
    return x * 2


@torch.no_grad()
def without_gradients(x):
    return x * 2


@program(lambda: (torch.randn(3, requires_grad=True),))
def no_grad_as_decorator(x):
    return without_gradients(x), x + 1


@program(lambda: (torch.randn(3, requires_grad=True),), raises="ValueError")
def exception_leaves_no_grad(x):
    with torch.no_grad():
        y = x * 2
        raise ValueError(y.requires_grad)


@program(lambda: (torch.randn(3, requires_grad=True),))
def exception_caught_outside_no_grad(x):
    try:
        with torch.no_grad():
            y = x * 2
            raise KeyError
    except KeyError:
        return y, x * 3, torch.is_grad_enabled()


@program(lambda: (torch.randn(3, requires_grad=True),))
def return_within_no_grad(x):
    for i in range(3):
        with torch.no_grad():
            if i == 1:
                return x * i
    return None


@program(given((3,)), check=lambda: EVENTS)
def own_context(x):
    with Recorder("a") as a:
        x = x + 1
    return x, a.name


@program(given((3,)), check=lambda: EVENTS)
def several_contexts(x):
    with Recorder("a") as a, Recorder("b"), Recorder("c") as c:
        x = x * 2
    with (Recorder("d") as d, Recorder("e")):
        x = x - 1
    return x, a, c.name + d.name


@program(given((3,)), check=lambda: EVENTS)
def context_swallows_exception(x):
    with Recorder("outer"):
        with Recorder("inner", swallow=True):
            x = x + 1
            raise ValueError("inside")
        x = x * 2
    return x


@program(given((3,)), check=lambda: EVENTS, raises="ValueError")
def exception_passes_contexts(x):
    with Recorder("a"), Recorder("b"):
        x.add_(1)
        raise ValueError("through")


@program(given((3,)), check=lambda: EVENTS)
def leave_contexts_in_loops(x):
    for i in range(4):
        with Recorder(i):
            if i == 0:
                continue
            x = x + i
            if i == 2:
                break
    return x


@program(given((3,)), check=lambda: EVENTS)
def return_from_nested_contexts(x):
    with Recorder("a"):
        try:
            with Recorder("b"):
                return x * 2
        finally:
            EVENTS.append("finally")


@program(given((3,)))
def generator_as_context(x):
    state = {"scale": 2.0}
    with scaled(state, 3) as n:
        y = x * n
        with scaled(state, 5):
            z = x * state["scale"]
    return y, z, state


@program(given((3,)))
def exception_in_generator_context(x):
    state = {"scale": 2.0}
    try:
        with scaled(state, 4):
            x = x * state["scale"]
            raise KeyError("k")
    except KeyError as error:
        return x, state, error.args


@scaled({"scale": 1.0}, 2)
def decorated(x):
    return x + 1


@program(given((3,)))
def context_as_decorator(x):
    return decorated(x) * 2


@program(given((3,)), check=lambda: EVENTS, graphs=None, breaks="print writes")
def print_within_context(x):
    with Recorder("a"):
        y = x + 1
        print("inside")
        y = y * 2
    return y


@program(lambda: (torch.randn(3, requires_grad=True),), graphs=None, breaks="print writes")
def print_within_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print("inside", torch.is_grad_enabled())
        z = x * 3
    return y, z, x * 4


@program(lambda: (torch.randn(3, requires_grad=True),), graphs=None, breaks="print writes")
def print_in_callee_within_no_grad(x):
    def inner(v):
        a = v * 2
        print("callee")
        return a, v * 3

    with torch.no_grad():
        with torch.enable_grad():
            first = inner(x)
        second = inner(x)
    return first, second, x * 2


@program(given((3,)), check=lambda: EVENTS, raises="RuntimeError")
def enter_fails(x):
    with Recorder("a"):
        x.add_(1)
        with Failing():
            EVENTS.append("never")


class Failing:
    def __enter__(self):
        raise RuntimeError("enter")

    def __exit__(self, *error):
        EVENTS.append("exit of failing")


class ExitFails:
    def __enter__(self):
        return 3

    def __exit__(self, *error):
        raise KeyError("exit")


@program(given((3,)))
def exit_fails(x):
    try:
        with ExitFails() as n:
            x = x * n
            raise ValueError("body")
    except KeyError as error:
        return x, type(error.__context__)


@program(given((3,)), raises="TypeError")
def not_a_context(x):
    with x + 1:
        return x


@program(given((3,)), check=lambda: EVENTS)
def context_from_argument_and_kept(x):
    recorder = Recorder("kept")
    recorder.__enter__()
    y = x + 1
    recorder.__exit__(None, None, None)
    return y, recorder


@program(given((3,)))
def closing(x):
    log = []
    with contextlib.closing(Closer(log)) as c:
        x = x + c.n
    return x, log


class Closer:
    def __init__(self, log):
        self.n = 4
        self.log = log

    def close(self):
        self.log.append("closed")


@program(lambda: (torch.randn(3, requires_grad=True),))
def writes_without_gradients(x):
    with torch.no_grad():
        y = x * 2
        y += 1
        x.mul_(2)
    return y, x


@program(given((3,)), graphs=None, breaks="the default dtype is set")
def default_dtype_within(x):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        y = torch.ones(3) + torch.tensor(1.5)
    finally:
        torch.set_default_dtype(before)
    return y, torch.ones(2), x + y


@program(given((3,)))
def default_dtype_stays_changed(x):
    torch.set_default_dtype(torch.float64)
    return torch.zeros(3) + x


@program(given((3,)), check=lambda: EVENTS)
def context_chosen_at_run_time(x):
    for flag in (True, False):
        with Recorder("on") if flag else contextlib.nullcontext():
            x = x * 2 + flag
    return x


@program([lambda: (torch.zeros(2, 3), torch.zeros(3)), lambda: (torch.zeros(2, 3), torch.full((3,), 3.0))], graphs=None,
         breaks="elements decide", raises="TypeError")
def guess_is_wrong_without_gradients(x, y):
    with torch.no_grad():
        z = x + y
        kept = z[z > 2]
        z = z if kept.numel() else -z
        iter(len(kept))
    return z
