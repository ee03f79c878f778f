"""Decoding and assembling of code objects: capture/bytecode/."""

import asyncio
import copy
import dis
import importlib.machinery
import opcode
import os
import random
import sys
import sysconfig
import types
import unittest

import bytecode_module as bytecode
import bytecode_samples as samples

CODE_TYPE = types.CodeType
# Facts about opcodes, as the C++ enumeration has them.
CONSTANT, NAME, LOCAL, CELL, COMPARISON, FORWARD, BACKWARD, ENDS = (1 << bit for bit in range(8))
LOCAL_SLOT, CELL_SLOT, FREE_SLOT = 0x20, 0x40, 0x80
OF_NEXT, OF_PREVIOUS, NO_HANDLER = range(3)
OP = opcode.opmap


def all_codes(code):
    """The code object and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CODE_TYPE):
            yield from all_codes(constant)


def changed(code, change):
    """The code with `change` made to it and to all code within it."""
    constants = tuple(changed(c, change) if isinstance(c, CODE_TYPE) else c for c in code.co_consts)
    return change(code.replace(co_consts=constants))


def changed_function(function, change):
    result = types.FunctionType(changed(function.__code__, change), function.__globals__, function.__name__,
                                function.__defaults__, function.__closure__)
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def made(source, name="f", **names):
    """The function of this name that the source defines."""
    exec(compile(source, "<test>", "exec"), names)
    return names[name]


def outcome(function, *args):
    """The result or error of a call, as something that can be compared."""
    try:
        result = function(*copy.deepcopy(args))
        if isinstance(result, types.CoroutineType):
            result = asyncio.run(result)
        elif isinstance(result, types.GeneratorType):
            result = list(result)
        return "value", repr(result)
    except Exception as error:
        lines = []
        trace = error.__traceback__.tb_next
        while trace:
            lines.append((trace.tb_frame.f_code.co_qualname, trace.tb_lineno))
            trace = trace.tb_next
        return "error", type(error), str(error), lines


def library_files():
    top = sysconfig.get_path("stdlib")
    others = ("__pycache__", "site-packages", "dist-packages")
    for folder, inner, names in os.walk(top):
        inner[:] = sorted(d for d in inner if d not in others)
        for name in sorted(names):
            if name.endswith(".py"):
                yield os.path.join(folder, name)


def library_codes():
    """The code objects of all files of the standard library that can be compiled."""
    for path in library_files():
        try:
            code = importlib.machinery.SourceFileLoader("module", path).get_code("module")
        except (SyntaxError, ValueError, UnicodeDecodeError):
            continue  # examples of wrong programs
        yield from all_codes(code)


class OpcodeTest(unittest.TestCase):
    def test_facts_are_those_of_python(self):
        table = {name: (number, caches, facts) for name, number, caches, facts in bytecode.opcodes()}
        self.assertEqual({name: number for name, (number, _, _) in table.items()}, opcode.opmap)
        for number, caches, facts in table.values():
            with self.subTest(opcode.opname[number]):
                self.assertEqual(caches, opcode._inline_cache_entries[number])
                for fact, known in ((CONSTANT, opcode.hasconst), (NAME, opcode.hasname), (LOCAL, opcode.haslocal),
                                    (CELL, opcode.hasfree), (COMPARISON, opcode.hascompare),
                                    (FORWARD | BACKWARD, opcode.hasjrel)):
                    self.assertEqual(bool(facts & fact), number in known)
                if facts & (FORWARD | BACKWARD):
                    self.assertEqual(bool(facts & BACKWARD), "BACKWARD" in opcode.opname[number])
        self.assertEqual(opcode.hasjabs, [])
        ends = {name for name, (_, _, facts) in table.items() if facts & ENDS}
        self.assertEqual(ends, {"RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
                                "JUMP_BACKWARD_NO_INTERRUPT"})

    def test_specialised_forms_are_those_of_python(self):
        for name, number in dis._all_opmap.items():
            self.assertEqual(bytecode.general_form(number), OP[dis.deoptmap.get(name, name)], name)
        for number in set(range(256)) - set(dis._all_opmap.values()):
            self.assertIsNone(bytecode.general_form(number), number)

    def test_stack_effects_are_those_of_python(self):
        # Python sums up the pair PRECALL, CALL, and counts a value that a generator begins with.
        exceptions = {"PRECALL", "CALL", "RETURN_GENERATOR", "CACHE"}
        for name, number, _, _ in bytecode.opcodes():
            for arg in (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 255, 256, 258, 4096):
                for jumps in (False, True):
                    if name in exceptions:
                        continue
                    expected = dis.stack_effect(number, arg if number >= opcode.HAVE_ARGUMENT else None, jump=jumps)
                    self.assertEqual(bytecode.stack_effect(number, arg, jumps), expected, (name, arg, jumps))
        for arg in range(5):
            pair = [OP["PRECALL"], OP["CALL"]]
            self.assertEqual(sum(bytecode.stack_effect(number, arg, False) for number in pair),
                             sum(dis.stack_effect(number, arg) for number in pair))

    def test_directions(self):
        one_way = {"FOR_ITER", "SEND", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"}
        for number in opcode.hasjrel:
            other = bytecode.other_direction(number)
            name = opcode.opname[number]
            if name in one_way:
                self.assertIsNone(other, name)
                continue
            expected = name.replace("_NO_INTERRUPT", "")
            here, there = ("BACKWARD", "FORWARD") if "BACKWARD" in name else ("FORWARD", "BACKWARD")
            self.assertEqual(opcode.opname[other], expected.replace(here, there))


class RoundTripTest(unittest.TestCase):
    def check(self, code):
        again = bytecode.assemble(code)
        self.assertEqual(again.co_code, code.co_code)
        self.assertEqual(again.co_exceptiontable, code.co_exceptiontable)
        self.assertEqual(again.co_linetable, code.co_linetable)
        self.assertLessEqual(again.co_stacksize, code.co_stacksize)
        for name in ("co_consts", "co_names", "co_varnames", "co_cellvars", "co_freevars", "co_flags", "co_nlocals",
                     "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_name", "co_qualname",
                     "co_filename", "co_firstlineno"):
            self.assertEqual(getattr(again, name), getattr(code, name), name)
        return again

    def test_standard_library(self):
        codes = smaller = 0
        for code in library_codes():
            codes += 1
            try:
                again = self.check(code)
            except Exception as error:
                raise AssertionError(f"{code.co_filename}: {code.co_qualname}, line {code.co_firstlineno}") from error
            if again.co_stacksize < code.co_stacksize:
                # The compiler counts handlers that no error leads to.
                smaller += 1
                self.assertIn(-1, bytecode.depths(code)[0])
            self.check_decoded(code)
        print(f"\n{codes} code objects, {smaller} of them with a smaller stack than the compiler's", file=sys.stderr)
        self.assertGreater(codes, 8000)

    def check_decoded(self, code):
        """Compares with what dis says."""
        instructions, ranges = bytecode.decode(code)
        shown = [i for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG"]
        self.assertEqual(len(shown), len(instructions))
        index_at = {i.offset: index for index, i in enumerate(shown)}
        for theirs, (number, arg, target, unit, location) in zip(shown, instructions):
            self.assertEqual((theirs.opcode, theirs.offset), (number, 2 * unit))
            if number in opcode.hasjrel:
                self.assertEqual(instructions[target][3] * 2 >= theirs.argval, True)
                self.assertEqual(index_at.get(theirs.argval, target), target)
            elif number >= opcode.HAVE_ARGUMENT:
                self.assertEqual(theirs.arg, arg)
            place = theirs.positions
            self.assertEqual((place.lineno, place.end_lineno, place.col_offset, place.end_col_offset),
                             tuple(None if number < 0 else number for number in location))
        self.assertEqual(len(ranges), len(list(dis._parse_exception_table(code))))
        for (start, end, target, depth, lasti), theirs in zip(ranges, dis._parse_exception_table(code)):
            self.assertEqual((depth, bool(lasti)), (theirs.depth, theirs.lasti))
            self.assertLessEqual(theirs.start, instructions[start][3] * 2)
            self.assertLessEqual(theirs.target, instructions[target][3] * 2)

    def test_many_constants_names_and_locals(self):
        for count in (254, 255, 256, 257, 65535, 65536, 65537):
            lines = [f"    v{i} = {i}.5" for i in range(count)]
            function = made("def f():\n" + "\n".join(lines) + f"\n    return v0 + v{count - 1} + n{count - 1}\n",
                            **{f"n{count - 1}": 1})
            with self.subTest(count):
                self.check(function.__code__)
                self.assertEqual(changed_function(function, bytecode.assemble)(), function())
        for count in (127, 128, 129, 32768):  # LOAD_GLOBAL shifts its index
            names = {f"n{i}": i for i in range(count)}
            function = made("def f():\n    return 0" + "".join(f" + n{i}" for i in range(count)) if count < 200 else
                            "def f():\n" + "".join(f"    n{i}\n" for i in range(count)) + f"    return n{count - 1}\n",
                            **names)
            with self.subTest(names=count):
                self.check(function.__code__)
                self.assertEqual(changed_function(function, bytecode.assemble)(), function())

    def test_far_jumps(self):
        for count in (20, 60, 125, 126, 127, 128, 129, 250, 255, 256, 257, 16000, 33000, 66000):
            function = made("def f(n):\n    total = 0\n    for i in range(n):\n        if i % 2:\n"
                            + "            total = i\n" * count + "    return total\n")
            with self.subTest(count):
                self.check(function.__code__)
                self.assertEqual(changed_function(function, bytecode.assemble)(6), function(6))

    def test_code_that_ran(self):
        def loop(values):
            total = 0
            for value in values:
                total += value
            return [total, len(values), values[0]]

        expected = loop([1, 2, 3])
        before = bytecode.decode(loop.__code__)
        for _ in range(100):
            loop([1, 2, 3])
        self.assertNotEqual(loop.__code__._co_code_adaptive, loop.__code__.co_code)
        self.assertEqual(bytecode.decode(loop.__code__), before)
        self.check(loop.__code__)
        self.assertEqual(changed_function(loop, bytecode.assemble)([1, 2, 3]), expected)

    def test_argument_that_is_a_cell(self):
        def outer(a, b, *rest, key=1, **more):
            local = a

            def inner():
                return a, rest, key, local

            return inner, b, more

        again = self.check(outer.__code__)
        self.assertEqual(set(again.co_cellvars), {"a", "rest", "key", "local"})
        self.assertEqual(changed_function(outer, bytecode.assemble)(1, 2, 3)[0](), (1, (3,), 1, 1))

    def test_free_and_local_variable_of_one_name(self):
        def outer():
            x = 5

            def inner():
                return x

            return inner

        code = outer().__code__
        both = bytecode.add_slot(code, "x", LOCAL_SLOT)
        self.assertEqual((both.co_varnames, both.co_freevars), (("x",), ("x",)))
        self.assertEqual(types.FunctionType(both, {}, closure=outer().__closure__)(), 5)
        with self.assertRaisesRegex(bytecode.BytecodeError, "a cell needs a name"):
            bytecode.add_slot(both, "x", CELL_SLOT)

    def test_code_without_lines(self):
        code = made("def f(a):\n    return a + 1\n").__code__.replace(co_linetable=b"")
        again = bytecode.assemble(code)
        self.assertEqual(set(again.co_positions()), {(None,) * 4})

    def test_extended_arg_that_is_not_needed(self):
        code = made("def f(a):\n    while a > 3: a -= 1\n    return a\n").__code__
        padded = bytes([OP["EXTENDED_ARG"], 0]) * 3
        longer = code.replace(co_code=padded + code.co_code, co_linetable=b"\xfa" + code.co_linetable)
        self.assertEqual(bytecode.assemble(longer).co_code, code.co_code)


class ExecutionTest(unittest.TestCase):
    def check(self, change, **options):
        for function, *calls in samples.SAMPLES:
            rebuilt = changed_function(function, change)
            for args in calls:
                with self.subTest(function.__name__, args=args, **options):
                    self.assertEqual(outcome(rebuilt, *args), outcome(function, *args))

    def test_assembled(self):
        self.check(bytecode.assemble)

    def test_with_other_prefix(self):
        self.check(bytecode.write_prefix)

    def test_with_another_variable(self):
        for kind in (LOCAL_SLOT, CELL_SLOT):
            self.check(lambda code: bytecode.add_slot(code, "added", kind), kind=kind)

    def places(self, code):
        """The indices before which anything may be inserted: not where neighbours belong together, nor where SEND
        would lead further than it can."""
        instructions, _ = bytecode.decode(code)
        numbers = [number for number, *_ in instructions]
        length = bytecode.read_prefix(code)[-1]
        back = OP["JUMP_BACKWARD_NO_INTERRUPT"]
        return [i for i in range(length, len(numbers))
                if numbers[i - 1] not in (OP["PRECALL"], OP["SEND"], OP["YIELD_VALUE"], back) and numbers[i] != back]

    def test_with_instructions_inserted_everywhere(self):
        # 300 make a jump over one instruction need EXTENDED_ARG.
        for count, past, handler in ((1, False, OF_NEXT), (1, True, OF_PREVIOUS), (2, False, NO_HANDLER),
                                     (300, False, OF_NEXT), (300, True, OF_NEXT)):
            self.check(lambda code: bytecode.insert_nops(code, self.places(code), count, past, handler),
                       count=count, past=past, handler=handler)

    def test_inserted_and_erased_again(self):
        for function, *_ in samples.SAMPLES:
            for code in all_codes(function.__code__):
                bare = bytecode.erase_nops(code)
                for handler in (OF_NEXT, NO_HANDLER):
                    longer = bytecode.insert_nops(bare, self.places(bare), 3, False, handler)
                    self.assertGreater(len(longer.co_code), len(bare.co_code))
                    shorter = bytecode.erase_nops(longer)
                    self.assertEqual(shorter.co_code, bare.co_code)
                    self.assertEqual(shorter.co_linetable, bare.co_linetable)
                    if handler == OF_NEXT:
                        self.assertEqual(shorter.co_exceptiontable, bare.co_exceptiontable)

    def test_jumps_grow_at_every_edge(self):
        source = "def f(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n"
        code = made(source).__code__
        numbers = [number for number, *_ in bytecode.decode(code)[0]]
        inside = numbers.index(OP["STORE_FAST"], numbers.index(OP["FOR_ITER"]))
        sizes = set()
        for count in [*range(230, 270), *range(65500, 65560)]:
            longer = bytecode.insert_nops(code, [inside], count)
            sizes.add(len(longer.co_code) - 2 * count)
            self.assertEqual(types.FunctionType(longer, {"range": range})(5), 10)
            self.assertEqual(bytecode.erase_nops(longer).co_code, code.co_code)
        # None, one and two EXTENDED_ARG before each of the two jumps.
        base = len(code.co_code)
        self.assertEqual({min(sizes), max(sizes)}, {base, base + 8})
        self.assertIn(base + 4, sizes)

    def test_early_return(self):
        def loop(n):
            while n:  # begins behind the prefix
                n -= 1
                if n == 3:
                    return "three"
            return "zero"

        code = bytecode.return_early(loop.__code__, "none")
        short = types.FunctionType(code, {})
        self.assertEqual([short(n) for n in (None, False, True, 2, 9)], ["none", "zero", "zero", "zero", "three"])
        code = bytecode.return_early(made("def f(n):\n    yield n\n").__code__, "none")
        self.assertEqual(list(types.FunctionType(code, {})(None)), [])
        self.assertEqual(list(types.FunctionType(code, {})(False)), [True])

    def test_handlers_of_inserted_instructions(self):
        code = made("def f():\n    try:\n        g()\n    except E:\n        h()\n").__code__
        _, ranges = bytecode.decode(code)
        start, end = ranges[0][:2]
        longer = bytecode.insert_nops(code, [start], 2, False, OF_NEXT)
        self.assertEqual(bytecode.decode(longer)[1][0][:2], (start, end + 2))
        longer = bytecode.insert_nops(code, [start], 2, False, OF_PREVIOUS)
        self.assertEqual(bytecode.decode(longer)[1][0][:2], (start + 2, end + 2))
        longer = bytecode.insert_nops(code, [end], 2, False, OF_PREVIOUS)
        self.assertEqual(bytecode.decode(longer)[1][0][:2], (start, end + 2))
        longer = bytecode.insert_nops(code, [start + 1], 2, False, NO_HANDLER)
        self.assertEqual([r[:2] for r in bytecode.decode(longer)[1][:2]], [(start, start + 1), (start + 3, end + 2)])


class GeneratorTest(unittest.TestCase):
    def test_send_throw_close(self):
        for change in (bytecode.assemble, bytecode.write_prefix):
            log = []
            outer = changed_function(samples.delegating, change)(log)
            self.assertEqual(next(outer), "first")
            self.assertEqual(outer.send("hello"), ("got", "hello"))
            self.assertIsNotNone(outer.gi_yieldfrom)
            self.assertEqual(outer.throw(KeyError("k")), "caught")
            outer.close()
            self.assertEqual(log, ["KeyError", "closed"])

    def test_tracebacks_and_lines(self):
        seen = []

        def trace(frame, event, arg):
            seen.append((event, frame.f_lineno))
            return trace

        def events(function):
            seen.clear()
            sys.settrace(trace)
            try:
                function(3)
            finally:
                sys.settrace(None)
            return list(seen)

        self.assertEqual(events(changed_function(samples.loops, bytecode.assemble)), events(samples.loops))


class PrefixTest(unittest.TestCase):
    def test_standard_forms(self):
        source = ("def f(a, b):\n    c = 1\n    def g():\n        d = a\n        def h():\n            yield c, d\n"
                  "        return h\n    return g, b\n")
        outer = made(source).__code__
        inner = next(c for c in all_codes(outer) if c.co_name == "g")
        generator = next(c for c in all_codes(outer) if c.co_name == "h")
        self.assertEqual(bytecode.read_prefix(outer), (0, [0, 3], 0, 1, 3))
        self.assertEqual(bytecode.read_prefix(inner), (1, [1], 0, 1, 3))
        self.assertEqual(bytecode.read_prefix(generator), (1, [], 1, 1, 4))

    def test_samples_keep_theirs(self):
        for function, *_ in samples.SAMPLES:
            for code in all_codes(function.__code__):
                again = bytecode.write_prefix(code)
                self.assertEqual(len(again.co_code), len(code.co_code))
                self.assertEqual(bytecode.read_prefix(again)[-1], bytecode.read_prefix(code)[-1])
                self.assertEqual(list(again.co_lines())[-1], list(code.co_lines())[-1])

    def test_free_variable_is_added(self):
        code = bytecode.add_slot(made("def f(a):\n    return a\n").__code__, "free", FREE_SLOT)
        self.assertEqual(code.co_freevars, ("free",))
        self.assertEqual(bytecode.read_prefix(code), (1, [], 0, 1, 2))
        self.assertEqual(types.FunctionType(code, {}, closure=(types.CellType(1),))(7), 7)


class RefusalTest(unittest.TestCase):
    """Code that cannot be written."""

    def setUp(self):
        self.code = made("def f(a):\n    return a\n").__code__

    def refused(self, message, instructions, ranges=()):
        instructions = [(OP[name], arg, target) for name, arg, target in instructions]
        with self.assertRaisesRegex(bytecode.BytecodeError, message):
            bytecode.assemble(self.code, instructions, list(ranges))

    def test_jumps(self):
        end = [("LOAD_FAST", 0, -1), ("RETURN_VALUE", 0, -1)]
        self.refused("cannot lead to instruction 0", [("JUMP_FORWARD", 0, 0), *end])
        self.refused("cannot lead to instruction 1", [("JUMP_BACKWARD", 0, 1), *end])
        self.refused("jump to instruction 3 of 3", [("JUMP_FORWARD", 0, 3), *end])
        self.refused("jump to instruction -1", [("JUMP_FORWARD", 0, -1), *end])
        self.refused("jump to instruction 1", [("NOP", 0, 1), *end])

    def test_stack(self):
        self.refused("too few values", [("POP_TOP", 0, -1), ("LOAD_FAST", 0, -1), ("RETURN_VALUE", 0, -1)])
        self.refused("too few values", [("RETURN_VALUE", 0, -1)])
        self.refused("behind the last instruction", [("LOAD_FAST", 0, -1)])
        self.refused("without instructions", [])
        self.refused(r"instruction 3 \(LOAD_FAST\): the stack is 0 deep here, but 1 when", [
            ("LOAD_FAST", 0, -1), ("POP_JUMP_FORWARD_IF_NONE", 0, 3), ("LOAD_FAST", 0, -1), ("LOAD_FAST", 0, -1),
            ("RETURN_VALUE", 0, -1)])

    def test_arguments(self):
        end = [("LOAD_FAST", 0, -1), ("RETURN_VALUE", 0, -1)]
        self.refused("index 7 of 1 constants", [("LOAD_CONST", 7, -1), *end])
        self.refused("index 3 of 0 names", [("LOAD_GLOBAL", 6, -1), *end])
        self.refused("index 1 of 1 variables", [("LOAD_FAST", 1, -1), *end])
        self.refused("variable 0 is not a cell", [("LOAD_DEREF", 0, -1), *end])
        self.refused("argument 6 is not possible", [*end[:1], *end[:1], ("COMPARE_OP", 6, -1), *end])
        self.refused("argument 2 is not possible", [("COPY_FREE_VARS", 2, -1), *end])
        self.refused("no instruction has the number 0", [("CACHE", 0, -1), *end])
        self.refused("no instruction has the number 144", [("EXTENDED_ARG", 0, -1), *end])
        self.refused("CALL with the same argument", [*end[:1], *end[:1], ("PRECALL", 0, -1), ("NOP", 0, -1),
                                                     ("CALL", 0, -1), *end])
        self.refused("RESUME must follow", [*end[:1], ("YIELD_VALUE", 0, -1), *end])

    def test_exception_ranges(self):
        lines = [("NOP", 0, -1), ("NOP", 0, -1), ("LOAD_FAST", 0, -1), ("RETURN_VALUE", 0, -1), ("RERAISE", 0, -1)]
        for ranges in ([(0, 2, 4, 0, 0), (1, 3, 4, 0, 0)], [(1, 1, 4, 0, 0)], [(0, 9, 4, 0, 0)], [(0, 1, 5, 0, 0)],
                       [(0, 1, 4, -1, 0)], [(-1, 1, 4, 0, 0)]):
            self.refused("it overlaps another, is empty, or leads", lines, ranges)
        self.refused("the stack is 0 deep, its handler expects 1", lines, [(0, 1, 4, 1, 0)])
        instructions = [(OP[name], arg, target) for name, arg, target in lines]
        code = bytecode.assemble(self.code, instructions, [(1, 2, 4, 0, 0), (0, 1, 4, 0, 0)])
        self.assertEqual([r[:3] for r in bytecode.decode(code)[1]], [(0, 1, 4), (1, 2, 4)])


class HostileTest(unittest.TestCase):
    """Code objects that somebody made by hand."""

    def test_cut_off(self):
        code = made("def f(a, b):\n    return a.x(b) + b\n").__code__
        kept = refused = 0
        for length in range(0, len(code.co_code), 2):
            # CPython itself writes behind such code when it is asked for co_code.
            shorter = code.replace(co_code=code.co_code[:length])
            try:
                bytecode.decode(shorter)
                kept += 1
            except bytecode.BytecodeError:
                refused += 1
        self.assertGreater(kept, 3)
        self.assertGreater(refused, 10)

    def test_jumps_into_instructions(self):
        code = made("def f(a):\n    if a: return a + 1\n    return a.x\n").__code__
        at = next(i.offset for i in dis.get_instructions(code) if i.opname.startswith("POP_JUMP"))
        good = code.co_code[at + 1]
        results = {}
        for distance in range(256):
            units = bytearray(code.co_code)
            units[at + 1] = distance
            try:
                bytecode.decode(code.replace(co_code=bytes(units)))
                results[distance] = True
            except bytecode.BytecodeError as error:
                self.assertIn("where no instruction begins", str(error))
        self.assertIn(good, results)
        starts = [i.offset for i in dis.get_instructions(code)]
        self.assertEqual(set(results), {(s - at - 2) // 2 for s in starts if s > at})

    def test_tables(self):
        code = made("def f(a):\n    try:\n        return a\n    finally:\n        a.x\n").__code__
        for table in (b"\x80", b"\x80\x01", b"\x00\x01\x00\x00", b"\x80\x00\x00\x00", b"\x80" + b"\x7f" * 7,
                      b"\x80\xff\x00\x00", b"\xbf\x01\x00\x00", b"\x80\x02\x02\x00\x81\x02\x02\x00"):
            with self.subTest(table), self.assertRaisesRegex(bytecode.BytecodeError, "exception table, byte"):
                bytecode.decode(code.replace(co_exceptiontable=table))
        for table in (b"\x00", b"\xf0", b"\xf0\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x01", b"\x80\x80", b"\xe8\x7f",
                      b"\xe8\x3f\xe8\x3f", b"\xd0\x01"):
            with self.subTest(table), self.assertRaisesRegex(bytecode.BytecodeError, "line table, byte"):
                bytecode.decode(code.replace(co_linetable=table))

    def test_references(self):
        """Neither results nor errors keep objects alive, and none is freed too early."""
        held = ("a constant", 1.5)
        code = made("def f(a):\n    return a.x + (lambda: a)()\n").__code__
        code = code.replace(co_consts=(*code.co_consts, held))
        broken = [code.replace(co_code=code.co_code[:-4]), code.replace(co_linetable=b"\x80"),
                  code.replace(co_exceptiontable=b"\x80"), code.replace(co_names=())]
        watched = [held, code.co_names[0], code.co_varnames[0], code.co_filename, code.co_qualname, None, code.co_code]
        before = [sys.getrefcount(each) for each in watched]
        for _ in range(1000):
            bytecode.assemble(code)
            bytecode.write_prefix(code)
            bytecode.erase_nops(bytecode.insert_nops(code, [len(bytecode.decode(code)[0]) - 1], 2))
            for each in broken:
                with self.assertRaises(bytecode.BytecodeError):
                    bytecode.assemble(each)
        after = [sys.getrefcount(each) for each in watched]
        for grown in (now - then for now, then in zip(after, before)):
            self.assertLess(abs(grown), 50)

    def test_random_changes(self):
        seed = int(os.environ.get("WICK_FUZZ_SEED", 1))
        count = int(os.environ.get("WICK_FUZZ_COUNT", 20000))
        draw = random.Random(seed)
        codes = [code for function, *_ in samples.SAMPLES for code in all_codes(function.__code__)]
        numbers = list(dis._all_opmap.values())
        outcomes = {"decoded": 0, "assembled": 0, "refused": 0, "refused by Python": 0}
        for _ in range(count):
            code = draw.choice(codes)
            field = draw.choice(["co_code", "co_code", "co_exceptiontable", "co_linetable"])
            value = bytearray(getattr(code, field))
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(len(value)) if value else 0
                kind = draw.randrange(6)
                if kind == 0:
                    del value[at:]
                elif kind == 1:
                    value[at:at] = draw.randbytes(draw.randint(1, 8))
                elif kind == 2 and field == "co_code":
                    value[at & ~1 : (at & ~1) + 2] = bytes([draw.choice(numbers), draw.randrange(256)])
                elif value and at < len(value):
                    value[at] = draw.choice([0, 1, 63, 64, 127, 128, 144, 255, draw.randrange(256)])
            try:
                changes = {field: bytes(value)}
                if draw.randrange(20) == 0:
                    changes["co_consts"], changes["co_names"] = (), ()
                mutated = code.replace(**changes)
            except (ValueError, SystemError):
                outcomes["refused by Python"] += 1
                continue
            try:
                decoded = bytecode.decode(mutated)
                outcomes["decoded"] += 1
                again = bytecode.assemble(mutated)
                outcomes["assembled"] += 1
            except bytecode.BytecodeError:
                outcomes["refused"] += 1
                continue
            plain = [[(n, a, t, l) for n, a, t, _, l in code[0]] for code in (decoded, bytecode.decode(again))]
            self.assertEqual(*plain)
            self.assertEqual(decoded[1], bytecode.decode(again)[1])
        print(f"\n{outcomes}", file=sys.stderr)
        self.assertGreater(outcomes["decoded"], count // 20)
        self.assertGreater(outcomes["refused"], count // 10)


if __name__ == "__main__":
    unittest.main()
