"""Small groups of statements with constructs that are rare in what the other parts make: FEATURES holds (template,
name, type of the variable {o} that it binds, or None)."""

import random_class_features
from random_base import DICT_INT, LIST_INT, LIST_STR, LIST_X, PAIR, SET_INT, X, parsed

TEXTS = [
    ("generator", "int", """
def {@1}({@2}):
    for {@3} in range({@2}):
        yield {@3} * {#}
{o} = sum({@1}({#}))
"""),
    ("generator with result", LIST_INT, """
def {@1}():
    {@2} = yield {i}
    yield {@2}
    return {#}
{@3} = {@1}()
{o} = [next({@3}), {@3}.send({#})]
try:
    next({@3})
except StopIteration as {@4}:
    {o}.append({@4}.value)
"""),
    ("yield from", LIST_INT, """
def {@1}():
    yield {i}
    return {#}
def {@2}():
    {@3} = yield from {@1}()
    yield {@3}
    yield from ({#}, {i})
{o} = list({@2}())
"""),
    ("generator thrown into", "str", """
def {@1}():
    try:
        yield {i}
    except ValueError as {@2}:
        yield str({@2})
    finally:
        {@4} = {#}
{@3} = {@1}()
next({@3})
{o} = {@3}.throw(ValueError({s}))
"""),
    ("generator closed", LIST_INT, """
{o} = [{i}, {i}]
def {@1}():
    try:
        while True:
            yield {#}
    finally:
        {o}.append({#})
{@2} = {@1}()
{o}.append(next({@2}))
{@2}.close()
"""),
    ("generator of tensors", LIST_X, """
def {@1}({@2}):
    yield {@2}
    {@2} = {@2} + 1
    yield {@2} * 2
{o} = [*{@1}({x})]
"""),
    ("generator escapes", None, """
{o} = ({@1} + {#} for {@1} in {li})
ESCAPED.append({o})
"""),
    ("generator expression of tensors", X, """
{o} = sum(({@1} * {#} for {@1} in {lx}), {x})
"""),
    ("coroutine", "int", """
async def {@1}({@2}):
    return {@2} + {#}
async def {@3}():
    return await {@1}({i}) + await {@1}({#})
{@4} = {@3}()
try:
    {@4}.send(None)
except StopIteration as {@5}:
    {o} = {@5}.value
"""),
    ("asynchronous loops", LIST_INT, """
{o} = [1, 2]
async def {@1}():
    yield {i}
    yield {#}
class {@6}:
    async def __aenter__(self):
        return {#}
    async def __aexit__(self, *error):
        {o}.append({#})
async def {@2}():
    async with {@6}() as {@7}:
        {o}.append({@7})
    async for {@3} in {@1}():
        {o}.append({@3})
    return [{@3} async for {@3} in {@1}() if {@3} is not None]
try:
    {@2}().send(None)
except StopIteration as {@5}:
    {o}.extend({@5}.value)
"""),
    ("exception group", "int", """
{o} = 0
try:
    raise ExceptionGroup("on purpose", [ValueError({i}), TypeError({s}), KeyError({#})])
except* (ValueError, KeyError) as {@1}:
    {o} = len({@1}.exceptions)
except* TypeError:
    {o} += {#}
"""),
    ("exception group in part", "str", """
{o} = "a"
try:
    try:
        raise ExceptionGroup("on purpose", [ValueError({i}), OSError({s})])
    except* ValueError as {@1}:
        {o} = str({@1}.exceptions[0])[:9]
except ExceptionGroup as {@2}:
    {o} += type({@2}.exceptions[0]).__name__
"""),
    ("deleted cell", "int", """
{@1} = {i}
def {@2}():
    return {@1}
{o} = {@2}()
del {@1}
try:
    {@2}()
except NameError:
    {o} += {#}
"""),
    ("unbound local", "str", """
if {b}:
    {@1} = {i}
try:
    {o} = str({@1})[:5]
except UnboundLocalError as {@2}:
    {o} = type({@2}).__name__
"""),
    ("global made and deleted", "int", """
def {@1}():
    global TEMPORARY
    TEMPORARY = {i}
    {@2} = TEMPORARY + 1
    del TEMPORARY
    return {@2}
{o} = {@1}()
"""),
    ("globals()", "bool", """
globals()["MADE"] = {i}
{o} = "MADE" in globals()
"""),
    ("locals()", "bool", """
{o} = "x" in locals()
"""),
    ("counter closure", LIST_INT, """
def {@1}():
    {@2} = {#}
    def {@3}({@5}=1):
        nonlocal {@2}
        {@2} += {@5}
        return {@2}
    return {@3}
{@4} = {@1}()
{o} = [{@4}(), {@4}({i}), {@4}()]
"""),
    ("closure that escapes", None, """
{@1} = [{i}, {#}]
{@3} = {x}
def {o}({@2}):
    {@1}.append({@2})
    return {@3} + len({@1})
ESCAPED.append({o})
{o}({#})
"""),
    ("closures that share", PAIR, """
def {@1}({@2}):
    def put({@3}):
        nonlocal {@2}
        {@2} = {@3}
    def get():
        return {@2}
    return put, get
{@4}, {@5} = {@1}({i})
{@6} = {@5}()
{@4}({i})
{o} = ({@6}, {@5}())
"""),
    ("lambdas in a loop", LIST_INT, """
{@1} = [lambda {@3}, {@2}={@2}: {@2} + {@3} for {@2} in range({#})]
{@4} = [lambda: {@2} for {@2} in range(2)]
{o} = [{@5}({i}) for {@5} in {@1}] + [{@4}[0](), {@4}[1]()]
"""),
    ("decorator with state", "int", """
{@6} = []
def {@1}({@2}):
    @functools.wraps({@2})
    def {@3}(*{@4}, **{@5}):
        {@6}.append(len({@4}))
        return {@2}(*{@4}, **{@5})
    return {@3}
@{@1}
def {@7}({@8}, extra=1):
    return {@8} + extra
{o} = {@7}({i}) + {@7}({#}, extra={i}) + len({@6}) + len({@7}.__name__)
"""),
    ("recursion", X, """
def {@1}({@2}, {@3}):
    if {@2} <= 0:
        return {@3}
    return {@1}({@2} - 1, {@3} + {@2}) * 0.5
{o} = {@1}({#}, {x})
"""),
    ("recursion on numbers", "int", """
{o} = (lambda {@1}: {@1}({@1}, {#}))(lambda {@1}, {@2}: 1 if {@2} < 2 else {@2} * {@1}({@1}, {@2} - 1))
"""),
    ("default argument that changes", LIST_INT, """
def {@1}({@2}, {@3}=[]):
    {@3}.append({@2})
    return {@3}
{@1}({i})
{o} = {@1}({#})
"""),
    ("keyword arguments", LIST_STR, """
def {@1}(*{@2}, sep="-", **{@3}):
    return [sep, *map(str, {@2}), *{@3}]
{o} = {@1}({i}, *{li}, sep="+", **{"m": {#}}, **{d})
"""),
    ("positional only", "int", """
def {@1}({@2}, /, {@3}=2, *, {@4}):
    return {@2} * {@3} - {@4}
{o} = {@1}({#}, {@4}={#})
"""),
    ("wrong arguments", "str", """
def {@1}({@2}, {@3}):
    return {@2}
try:
    {o} = {@1}({i})
except TypeError as {@4}:
    {o} = str({@4})[-12:]
"""),
    ("return in finally", "int", """
def {@1}():
    for {@2} in range(3):
        try:
            if {b}:
                return {@2}
            continue
        finally:
            if {@2} > 1:
                return {#} + 10
    return {i}
{o} = {@1}()
"""),
    ("break in finally", "int", """
{o} = 0
for {@1} in range(4):
    try:
        {o} += 1 // ({@1} - 2)
    except ZeroDivisionError:
        {o} += 10
        continue
    finally:
        if {o} > {#}:
            break
"""),
    ("nested handlers", "str", """
try:
    try:
        {}[{i}]
    except KeyError as {@1}:
        raise ValueError({s}) from {@1}
    finally:
        {@2} = {x} + 1
except ValueError as {@3}:
    {o} = f"{type({@3}.__cause__).__name__}"
"""),
    ("error after a write", LIST_INT, """
{o} = [{i}, {#}]
try:
    {o}.append({i})
    {o}[{o}.index(12345)] = 3
    {o}.append(99)
except ValueError:
    {o}.append(-1)
else:
    {o}.append(-2)
"""),
    ("tensor error after a write", X, """
{o} = {x}.clone()
try:
    {o}.add_(1)
    {o}.mul_(torch.ones(7, 1, 9))
except RuntimeError:
    {o}.sub_(2)
"""),
    ("iter of a callable", LIST_INT, """
{@1} = [{i}, 7, {#}, 7]
{o} = list(iter({@1}.pop, 7)) + [1]
"""),
    ("partly read iterator", LIST_INT, """
{@1} = iter({li})
next({@1})
{o} = [0, *{@1}, {i}]
"""),
    ("iterator escapes", None, """
{o} = iter([{i}, {#}, {i}])
next({o})
ESCAPED.append({o})
"""),
    ("reversed and zipped", LIST_INT, """
{@1} = zip(reversed({li}), itertools.count({#}))
{@2} = next({@1})
{o} = [{@3} - {@4} for {@3}, {@4} in {@1}] + list({@2})
"""),
    ("partial", "int", """
{@1} = functools.partial(lambda {@2}, {@3}, k=1: {@2} - {@3} * k, {i})
{o} = {@1}({#}, k=2)
"""),
    ("partial of tensors", X, """
{@1} = functools.partial(torch.add, {x}, alpha=2)
{o} = {@1}({x})
"""),
    ("reduce", X, """
{o} = functools.reduce(lambda {@1}, {@2}: {@1} + {@2} * {#}, {lx})
"""),
    ("cached function", "int", """
{@2} = []
@functools.lru_cache(maxsize=None)
def {@1}({@3}):
    {@2}.append({@3})
    return {@3} + 1
{o} = {@1}({i}) + {@1}(1) + {@1}(1) + len({@2})
"""),
    ("groupby", DICT_INT, """
{o} = {{@1}: len(list({@2})) for {@1}, {@2} in itertools.groupby("aabc")}
"""),
    ("counter", "int", """
{@1} = collections.Counter({s} + "ab")
{@1}["a"] += {#}
{@1}.update("b")
{o} = {@1}["a"] + len({@1}.most_common(1))
"""),
    ("ordered dictionary", LIST_STR, """
{@1} = collections.OrderedDict({d})
{@1}.move_to_end("a")
{@1}.popitem(last=False)
{o} = list({@1}) + ["x"]
"""),
    ("default dictionary", DICT_INT, """
{@1} = collections.defaultdict(list)
for {@2} in {li}[:4]:
    {@1}[{@2} % 2].append({@2})
{o} = {"a": len({@1}[0]), "b": len({@1}[1]), "c": len({@1})}
"""),
    ("return out of with", X, """
def {@1}({@2}):
    with torch.no_grad():
        for {@3} in range(3):
            with contextlib.nullcontext({@3}):
                if {@3} == {#} - 1:
                    return {@2} + {@3}
    return {@2}
{o} = {@1}({x})
"""),
    ("gradient modes", LIST_INT, """
with torch.no_grad():
    {@1} = torch.is_grad_enabled()
    with torch.enable_grad():
        {@2} = torch.is_grad_enabled()
{o} = [int({@1}), int({@2}), int(torch.is_grad_enabled())]
"""),
    ("gradients", X, """
with torch.enable_grad():
    {@1} = {x}.detach().clone().requires_grad_()
    ({@1} * {#} + {@1}).sum().backward()
{o} = {@1}.grad
"""),
    ("output argument", X, """
{o} = torch.zeros_like({x})
torch.mul({x}.to({o}.dtype), {#}, out={o})
"""),
    ("result is the argument", X, """
{o} = {x1}
{@1} = {o}.add_(1) is {o}
{@2} = [{o}, {o}]
{@2}[0].mul_(2)
"""),
    ("views written", X, """
{o} = {x}.clone()
{@1} = {o}[0]
{@2} = {o}.t()
{@1}.add_({#})
{@2}[0] = {@1}[0]
{o}[:, -1:] *= 2
"""),
    ("swap of tensors", X, """
{o}, {@1} = {x}, {x} + 1
{o}, {@1} = {@1}, {o}
{@1} = {@1} * 2
"""),
    ("matrix product in place", X, """
{o} = {x}
{o} @= ({o}.t() @ {o}).clamp(-2, 2)
{o} = {o}.clamp(-8, 8)
"""),
    ("sizes from data", "int", """
{@1} = {x}
{@2} = {@1}.gt(0).nonzero()
{o} = {@2}.shape[0]
for {@3} in {@2}.tolist()[:3]:
    {o} += {@3}[0] * {@3}[1]
"""),
    ("selection by a mask", X, """
{@1} = {x}
{@2} = {@1}[{@1} > {#}]
{o} = {@1} + {@2}.sum() if {@2}.numel() else {@1} - 1
"""),
    ("list from a tensor", LIST_X, """
{o} = [{x}, *[{@1} * 2 for {@1} in ({x}, {x})]]
{o}[0], {o}[-1] = {o}[-1], {o}[0]
"""),
    ("sizes in a loop", "int", """
{o} = 0
for {@1} in range({x}.dim()):
    {o} += {x}.shape[{@1}] * {@1}
"""),
    ("rows collected", X, """
{@1} = []
for {@2}, {@3} in enumerate({x}):
    if {@2} % 2 == 0:
        {@3} = {@3} * {#}
    {@1}.append({@3})
{o} = torch.stack({@1})
"""),
    ("columns written", X, """
{o} = torch.zeros_like({x})
for {@1} in range({x}.shape[1]):
    {o}[:, {@1}] = {x1}.to({o}.dtype)[:, {@1}] + {@1}
"""),
    ("type dispatch", "str", """
{@1} = {any}
if isinstance({@1}, torch.Tensor):
    {o} = str({@1}.dtype)
elif isinstance({@1}, bool):
    {o} = "bool"
elif isinstance({@1}, (int, float)):
    {o} = type({@1}).__name__
elif {@1} is None:
    {o} = "nothing"
elif hasattr({@1}, "__len__") and not isinstance({@1}, type):
    {o} = "sized"
else:
    {o} = "other"
"""),
    ("dtype dispatch", X, """
if {x1}.dtype == torch.float32:
    {o} = {x1} * {#}
elif {x1}.dtype == torch.float64:
    {o} = {x1} - {#}
else:
    {o} = {x1}.float()
"""),
    ("dtype as value", X, """
{@1} = {"a": torch.float32, "b": torch.float64}[{keyab}]
{o} = {x}.to({@1}) + torch.zeros((), dtype={@1})
"""),
    ("chained comparison of tensors", X, """
{@1} = {x}
{o} = torch.where(({@1} > -1) & ({@1} < {#}), {@1}, {@1} * 2)
"""),
    ("random access by data", X, """
{@1} = {x}
{@2} = {@1}.sum(1).gt(0).long()
{o} = {@1} + {@2}.unsqueeze(1) if {@2}.sum().item() > 0 else {@1} - 1
"""),
    ("data decides", X, """
{o} = {x}
for {@1} in range(3):
    if {o}.sum() > {#}:
        {o} = {o} * 0.5
    else:
        {o} = {o} + 1
"""),
    ("sorting by a key", LIST_STR, """
{o} = sorted(["b", "aa", {s}], key=len, reverse={b})
{o}.sort(key=lambda {@1}: ({@1}[-1:], len({@1})))
"""),
    ("nested comprehension", LIST_INT, """
{o} = [{@3} for {@1} in [[{i}, {#}], {li}[:2]] for {@3} in {@1} if {@3} != 77] + [len({{@1}: {@2} for {@1}, {@2} in enumerate("ab")})]
"""),
    ("comprehension with a closure", LIST_INT, """
{@1} = {i}
{o} = [({@2}, {@1})[{@2} % 2] for {@2} in range(3) if {@2} < {@1} or True]
{@1} += 1
"""),
    ("walrus in a comprehension", LIST_INT, """
{o} = [{@1} for {@2} in range(4) if ({@1} := {@2} * {#}) > 2] + [{i}, {i}]
"""),
    ("star in index and return", "int", """
{@1} = {(1, 2): {i}, (1, {#}): 5}
{@2} = (2,)
{o} = {@1}[1, *{@2}]
"""),
    ("slices", LIST_INT, """
{@1} = slice({#}, None, 2)
{@2} = [{i}, 1, 2, 3, 4]
{@2}[{@1}] = [9] * len({@2}[{@1}])
del {@2}[::3]
{o} = {@2}[::-1] + [{@1}.start, {#}]
"""),
    ("deep recursion ends", "bool", """
def {@1}():
    return {@1}() + 1
try:
    {@1}()
    {o} = False
except RecursionError:
    {o} = True
"""),
    ("sets compared", SET_INT, """
{@1} = {{i}, {#}, 3}
{@2} = {*{@1}, 8}
{o} = {@2} - {@1} if {@1} < {@2} else {@1} & {@2}
{o} |= {0}
"""),
    ("frozen set as a key", "int", """
{@1} = {frozenset({1, 2}): {i}, ("k", {#}): 2}
{o} = {@1}[frozenset([2, 1])] + ({"k", 3} == {3, "k"})
"""),
    ("bytes", "int", """
{@1} = bytearray({y})
{@1}[0] = {#}
{@1}.extend(b"zz")
{o} = sum({@1}) + memoryview({@1})[0] + bytes({@1})[-1]
"""),
    ("complex", "float", """
{@1} = complex({#}, {#}) * 1j
{o} = {@1}.real + {@1}.imag - abs({@1}) * 0
"""),
    ("string building", "str", """
{@1} = []
for {@2}, {@3} in zip("abc", {li}):
    {@1} += [f"{{@2}:>3}{{@3}!r:<4}"]
{o} = "|".join({@1})[:14]
"""),
    ("global function rebound", "int", """
def {@1}():
    return HOOK({i})
{o} = {@1}()
globals()["HOOK"] = (lambda {@2}: {@2} + {#})
{o} += {@1}()
"""),
    ("many names", "int", None),
    ("defaults changed", "int", """
def {@1}({@2}={#}):
    return {@2}
{o} = {@1}()
{@1}.__defaults__ = ({i},)
{o} += {@1}()
"""),
    ("code changed", "int", """
def {@1}():
    return {#}
def {@2}():
    return 50
{o} = {@1}()
{@1}.__code__ = {@2}.__code__
{o} += {@1}()
"""),
    ("exec", "int", """
{@1} = {"given": {i}}
exec("result = given + 1", {@1})
{o} = {@1}["result"]
"""),
    ("eval", "int", """
{o} = eval("given * 2", {"given": {i}})
"""),
    ("copying", LIST_INT, """
{@1} = {"k": [{i}, {#}], "x": {x}}
{@2}, {@3} = copy.copy({@1}), copy.deepcopy({@1})
{@1}["k"].append(3)
{o} = {@2}["k"] + {@3}["k"] + [int({@2}["x"] is {@1}["x"]), int({@3}["x"] is {@1}["x"])]
"""),
    ("functions in a dictionary", "int", """
{@1} = {"add": operator.add, "sub": lambda {@2}, {@3}: {@2} - {@3}, "max": max}
{o} = {@1}["add"]({i}, {#}) + {@1}["sub"]({i}, {#}) + {@1}.get("no", {@1}["max"])(1, {#})
"""),
    ("typing", "int", """
{@1}: typing.Optional[int] = {i}
{@2}: "list[int]" = [{#}]
{o} = typing.cast(int, {@1}) + len({@2}) + (typing.TYPE_CHECKING is False)
"""),
    ("any and all of tensors", "bool", """
{o} = any({@1}.dim() == 1 for {@1} in {lx}) or all(torch.is_tensor({@1}) for {@1} in {x})
"""),
    ("unpacking of many kinds", LIST_INT, """
({@1}, *{@2}), {@3} = [[{i}, {#}, 4], "z"]
[{@4}, {@5}] = {"p": 1, "q": 2}
{@6}, = ({#},)
{o} = [{@1}, *{@2}, len({@4} + {@5}), {@6}]
"""),
    ("object equality", PAIR, """
{@1} = [{i}]
{@2} = [{@1}, {@1}]
{@2}[0].append({#})
{o} = (len({@1}), int({@2}[0] is {@2}[1]))
"""),
    ("self containing list", None, """
{o} = [{i}]
{o}.append({o})
ESCAPED.append({o})
"""),
]


def many_names():
    """Returns a group with more than 255 names and constants, whose instructions need EXTENDED_ARG."""
    total = " + ".join(str(1000 + index) + ".5" if index % 2 else f"len('name{index}')" for index in range(270))
    return "\n".join(["{o} = {i}", "if {b}:", "    {o} = int(0 * {o} + " + total + ")"])


FEATURES = [(parsed((text or many_names()).strip("\n")), name, kind) for name, kind, text in TEXTS + random_class_features.TEXTS]
