"""Makes a program smaller while it stays interesting."""

import ast
import os
import pickle


def bodies(tree):
    """Yields (node, field) of all lists of statements."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(getattr(node, field, None), list) and getattr(node, field):
                yield node, field


def used_seconds():
    """Returns the processor's time that this process and its children have used."""
    return sum(os.times()[:4])


def count_nodes(tree):
    return sum(1 for _ in ast.walk(tree))


class Reducer:
    """`interesting(source)` tells whether a smaller program still shows what the first one showed."""

    def __init__(self, source, interesting, seconds=30):
        self.interesting = interesting
        self.end = used_seconds() + seconds
        self.keep(source)
        self.tried = set()

    def keep(self, source):
        self.tree = ast.parse(source)
        self.packed = pickle.dumps(self.tree)  # faster to copy than the tree itself

    def run(self):
        """Returns the source of the smallest program that was found."""
        size = None
        while size != count_nodes(self.tree) and used_seconds() < self.end:
            size = count_nodes(self.tree)
            self.drop_calls()
            self.drop_statements()
            self.flatten()
            self.shorten_lists()
            self.shrink_expressions()
        return ast.unparse(self.tree) + "\n"

    def attempt(self, change):
        """Applies `change` to a copy of the tree, and keeps it when it stays interesting. Returns whether it did."""
        if used_seconds() > self.end:
            return False
        tree = pickle.loads(self.packed)
        if not change(tree):
            return False
        try:
            source = ast.unparse(ast.fix_missing_locations(tree))
            if source in self.tried:
                return False
            self.tried.add(source)
            compile(source, "<reduced>", "exec")
        except (SyntaxError, ValueError, AttributeError):
            return False
        if not self.interesting(source + "\n"):
            return False
        self.keep(source)
        return True

    def drop_calls(self):
        """Shortens the list of calls, from its end and from its beginning."""
        def calls(tree):
            return next((node.value.elts for node in tree.body if isinstance(node, ast.Assign) and
                         getattr(node.targets[0], "id", "") == "CALLS"), [])

        for position in (-1, 0):
            def change(tree, position=position):
                if len(calls(tree)) < 2:
                    return False
                del calls(tree)[position]
                return True
            while self.attempt(change):
                pass

    def drop_statements(self):
        """Deletes runs of statements, long ones first, from every list."""
        index = 0
        while index < len(list(bodies(self.tree))) and used_seconds() < self.end:
            length = len(self.held(index))
            chunk = length
            while chunk >= 1:
                start = 0
                while start < len(self.held(index)):
                    def change(tree, start=start, chunk=chunk):
                        node, field = list(bodies(tree))[index]
                        held = getattr(node, field)
                        del held[start:start + chunk]
                        if not held and field == "body" and not isinstance(node, ast.Module):
                            held.append(ast.Pass())
                        return True
                    if not self.only_pass(index) and self.attempt(change):
                        if index >= len(list(bodies(self.tree))):
                            return
                        continue
                    start += chunk
                chunk //= 2
            index += 1

    def held(self, index):
        found = list(bodies(self.tree))
        return getattr(*found[index]) if index < len(found) else []

    def only_pass(self, index):
        held = self.held(index)
        return len(held) == 1 and isinstance(held[0], ast.Pass)

    def flatten(self):
        """Replaces a compound statement by one of its blocks."""
        index = 0
        while index < len(list(bodies(self.tree))):
            position = 0
            while position < len(self.held(index)):
                for inner in ("body", "orelse", "finalbody"):
                    def change(tree, inner=inner, position=position):
                        node, field = list(bodies(tree))[index]
                        held = getattr(node, field)
                        statement = held[position]
                        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) or not getattr(statement, inner, None):
                            return False
                        held[position:position + 1] = getattr(statement, inner)
                        return True
                    if self.attempt(change):
                        break
                position += 1
            index += 1

    def shorten_lists(self):
        """Takes elements out of displays, arguments, and the list of calls."""
        def lists(tree):
            for node in ast.walk(tree):
                for field in ("elts", "args", "keywords", "decorator_list", "bases", "values", "names"):
                    if isinstance(getattr(node, field, None), list) and getattr(node, field):
                        yield node, field
        index = 0
        while index < len(list(lists(self.tree))) and used_seconds() < self.end:
            found = list(lists(self.tree))[index]
            position = len(getattr(*found)) - 1
            while position >= 0:
                def change(tree, position=position):
                    node, field = list(lists(tree))[index]
                    if position >= len(getattr(node, field)):
                        return False
                    del getattr(node, field)[position]
                    if isinstance(node, ast.Dict):
                        del node.keys[position]
                    return bool(getattr(node, field)) or field in ("args", "keywords", "elts", "decorator_list", "bases")
                self.attempt(change)
                if index >= len(list(lists(self.tree))):
                    return
                position -= 1
            index += 1

    def shrink_expressions(self):
        """Replaces an expression by one of its operands, or by a number."""
        def places(tree):
            for node in ast.walk(tree):
                for field, value in ast.iter_fields(node):
                    if isinstance(value, ast.expr) and not isinstance(value, (ast.Name, ast.Constant)) and \
                            not isinstance(getattr(value, "ctx", None), (ast.Store, ast.Del)):
                        yield node, field, None
                    elif isinstance(value, list):
                        for position, item in enumerate(value):
                            if isinstance(item, ast.expr) and not isinstance(item, (ast.Name, ast.Constant)) and \
                                    not isinstance(getattr(item, "ctx", None), (ast.Store, ast.Del)):
                                yield node, field, position
        index = 0
        while used_seconds() < self.end:
            found = list(places(self.tree))
            if index >= len(found):
                return
            node, field, position = found[index]
            value = getattr(node, field) if position is None else getattr(node, field)[position]
            operands = [child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr)]
            replaced = False
            for operand in [*operands, ast.Constant(1)]:
                def change(tree, operand=operand):
                    places_now = list(places(tree))
                    if index >= len(places_now):
                        return False
                    node, field, position = places_now[index]
                    if position is None:
                        setattr(node, field, operand)
                    else:
                        getattr(node, field)[position] = operand
                    return True
                if self.attempt(change):
                    replaced = True
                    break
            if not replaced:
                index += 1
