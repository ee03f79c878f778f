"""Compilers that are wrong on purpose: the comparison of random programs must notice each of them."""

import ast
import copy
import functools
import linecache
import operator
import os
import types


def identity(function):
    return function


def source_of(function):
    """Returns the tree of a program's entry function."""
    tree = ast.parse("".join(linecache.getlines(function.__code__.co_filename)))
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function.__name__)


def rebuilt(function, transformer):
    """Returns the function with its source changed."""
    tree = ast.Module([ast.fix_missing_locations(transformer.visit(source_of(function)))], [])
    module_code = compile(tree, function.__code__.co_filename, "exec")
    code = next(constant for constant in module_code.co_consts if isinstance(constant, types.CodeType))
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class Dropper(ast.NodeTransformer):
    """Replaces the statements that `unwanted` accepts by nothing."""

    def __init__(self, unwanted):
        self.unwanted = unwanted

    def visit(self, node):
        if isinstance(node, ast.stmt) and self.unwanted(node):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)


class Changer(ast.NodeTransformer):
    """Replaces nodes by what `change` makes of them."""

    def __init__(self, change):
        self.change = change

    def visit(self, node):
        node = self.generic_visit(node)
        return self.change(node) or node


def dropping(unwanted):
    return lambda function: rebuilt(function, Dropper(unwanted))


def changing(change):
    return lambda function: rebuilt(function, Changer(change))


def has_method(*names):
    return lambda node: isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and \
        isinstance(node.value.func, ast.Attribute) and node.value.func.attr in names


def writes(kind):
    return lambda node: isinstance(node, ast.Assign) and isinstance(node.targets[0], kind)


def first_result(function):
    """Remembers the result of the first call."""
    results = []

    @functools.wraps(function)
    def cached(*arguments, **keywords):
        if not results:
            results.append(function(*arguments, **keywords))
        return results[0]
    return cached


def guarded(key_of):
    """Runs a call whose key was seen before with the arguments of that call, as one whose guards are too weak does."""
    def compiler(function):
        seen = {}

        @functools.wraps(function)
        def run(*arguments, **keywords):
            key = tuple([key_of(value) for value in arguments])
            first = seen.setdefault(key, arguments)
            if first is arguments:
                return function(*arguments, **keywords)
            return function(*[old if isinstance(old, (int, float, bool, str)) else new for old, new in zip(first, arguments)], **keywords)
        return run
    return compiler


def is_tensor(value):
    return hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "to")


def first_dtypes(function):
    """Converts tensors to the dtypes of the first call."""
    dtypes = []

    @functools.wraps(function)
    def run(*arguments, **keywords):
        if not dtypes:
            dtypes.extend(getattr(value, "dtype", None) for value in arguments)
        arguments = [value.to(dtype) if is_tensor(value) and dtype is not None and value.dtype != dtype else value
                     for value, dtype in zip(arguments, dtypes)] + list(arguments[len(dtypes):])
        return function(*arguments, **keywords)
    return run


def first_sizes(function):
    """Uses the sizes of the first call: narrows larger tensors."""
    sizes = []

    @functools.wraps(function)
    def run(*arguments, **keywords):
        if not sizes:
            sizes.extend(value.shape[0] if is_tensor(value) and value.dim() else None for value in arguments)
        arguments = [value[:size] if size is not None and is_tensor(value) and value.dim() and value.shape[0] > size else value
                     for value, size in zip(arguments, sizes)] + list(arguments[len(sizes):])
        return function(*arguments, **keywords)
    return run


def on_copies(function):
    """Loses what the function writes to its arguments."""
    return functools.wraps(function)(lambda *arguments, **keywords: function(*[
        copied(value) for value in arguments], **keywords))


def copied(value):
    try:
        return copy.deepcopy(value)
    except TypeError:
        return value


def copied_result(function):
    """Returns copies, so that identity and sharing are lost."""
    return functools.wraps(function)(lambda *arguments, **keywords: copied(function(*arguments, **keywords)))


def old_globals(function):
    """Reads globals as they were when it was compiled."""
    made = types.FunctionType(function.__code__, dict(function.__globals__), function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def silent(function):
    """Returns None where the function raises."""
    @functools.wraps(function)
    def run(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except Exception:
            return None
    return run


def other_error(function):
    """Raises with another text."""
    @functools.wraps(function)
    def run(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except Exception as error:
            error.args = (*error.args, "more")
            raise
    return run


def without_lines(function):
    """Has wrong line numbers."""
    return function.__new__(type(function), function.__code__.replace(co_firstlineno=1), function.__globals__, function.__name__,
                            function.__defaults__) if not function.__kwdefaults__ else function


def contiguous(function):
    """Changes the strides of results."""
    def run(*arguments, **keywords):
        return everywhere(function(*arguments, **keywords), lambda value: value.contiguous())
    return functools.wraps(function)(run)


def positive_zero(function):
    """Loses the sign of zeros."""
    def run(*arguments, **keywords):
        return everywhere(function(*arguments, **keywords), lambda value: value + 0 if value.is_floating_point() and
                          (value == 0).any() else value)
    return functools.wraps(function)(run)


def everywhere(value, change):
    if is_tensor(value):
        return change(value)
    if type(value) is not tuple:
        return value
    parts = tuple([everywhere(part, change) for part in value])
    return value if all(map(operator.is_, parts, value)) else parts


def leaves_mode(function):
    """Leaves another gradient mode behind."""
    def run(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        finally:
            world = function.__globals__["torch"]
            world.no_grad().__enter__()
    return functools.wraps(function)(run)


def crashes(function):
    """Ends the process in a call that passes a list."""
    def run(*arguments, **keywords):
        if any(type(value) is list for value in arguments):
            os.abort()
        return function(*arguments, **keywords)
    return functools.wraps(function)(run)


def never_ends(function):
    """Runs on when the function raises."""
    def run(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except Exception:
            while True:
                pass
    return functools.wraps(function)(run)


def without_history(function):
    """Loses the history of results that require a gradient."""
    def run(*arguments, **keywords):
        return everywhere(function(*arguments, **keywords), lambda value: value if value.is_leaf else
                          value.detach().clone().requires_grad_())
    return functools.wraps(function)(run)


def swapped_branches(node):
    if isinstance(node, ast.If) and node.orelse:
        return ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse), node)


def no_default(node):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and len(node.args) == 2:
        return ast.copy_location(ast.Call(node.func, node.args[:1], []), node)


def plus_for_minus(node):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return ast.copy_location(ast.BinOp(node.left, ast.Add(), node.right), node)


def out_of_place(node):
    """x += y becomes x = x + y."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        loaded = ast.Name(node.target.id, ast.Load())
        return ast.copy_location(ast.Assign([node.target], ast.BinOp(loaded, node.op, node.value)), node)


def local_nonlocal(node):
    if isinstance(node, ast.Nonlocal):
        return ast.copy_location(ast.Pass(), node)


def broad_handler(node):
    if isinstance(node, ast.ExceptHandler) and node.type is not None and node.name is None:
        return ast.copy_location(ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, node.body), node)


def reversed_loop(node):
    if isinstance(node, ast.For):
        values = ast.Call(ast.Name("reversed", ast.Load()), [ast.Call(ast.Name("list", ast.Load()), [node.iter], [])], [])
        return ast.copy_location(ast.For(node.target, values, node.body, node.orelse), node)


def once(node):
    if isinstance(node, ast.For) and not node.orelse:
        return ast.copy_location(ast.For(node.target, node.iter, node.body + [ast.Break()], []), node)


COMPILERS = {
    "drops augmented assignments": dropping(lambda node: isinstance(node, ast.AugAssign)),
    "drops deletions": dropping(lambda node: isinstance(node, ast.Delete)),
    "drops append and add": dropping(has_method("append", "add")),
    "drops other writes to containers": dropping(has_method("update", "extend", "insert", "setdefault", "reverse", "sort", "rotate")),
    "drops writes to tensors": dropping(has_method("add_", "mul_", "zero_", "fill_", "copy_")),
    "drops writes to attributes": dropping(writes(ast.Attribute)),
    "drops writes to items": dropping(writes(ast.Subscript)),
    "drops raises": dropping(lambda node: isinstance(node, ast.Raise)),
    "drops continues": dropping(lambda node: isinstance(node, ast.Continue)),
    "drops prints": dropping(lambda node: isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and
                             getattr(node.value.func, "id", "") == "print"),
    "drops finally": changing(lambda node: ast.copy_location(ast.Try(node.body, node.handlers, node.orelse, []), node)
                              if isinstance(node, ast.Try) and node.handlers and node.finalbody else None),
    "drops else of loops": changing(lambda node: ast.copy_location(ast.For(node.target, node.iter, node.body, []), node)
                                    if isinstance(node, ast.For) and node.orelse else None),
    "swaps branches": changing(swapped_branches),
    "loses defaults of get": changing(no_default),
    "adds for subtracts": changing(plus_for_minus),
    "in place becomes out of place": changing(out_of_place),
    "nonlocal becomes local": changing(local_nonlocal),
    "handles too much": changing(broad_handler),
    "loops backwards": changing(reversed_loop),
    "loops once": changing(once),
    "first result": first_result,
    "guards types alone": guarded(type),
    "guards equality": guarded(lambda value: value if isinstance(value, (int, float, str)) else type(value)),
    "first dtypes": first_dtypes,
    "first sizes": first_sizes,
    "runs on copies": on_copies,
    "copies the result": copied_result,
    "old globals": old_globals,
    "swallows exceptions": silent,
    "other text of errors": other_error,
    "wrong lines": without_lines,
    "contiguous results": contiguous,
    "loses the sign of zero": positive_zero,
    "leaves the mode": leaves_mode,
    "loses gradients": without_history,
    "crashes": crashes,
    "never ends": never_ends,
}
