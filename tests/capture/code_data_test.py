"""Data of code objects, and calls of code (capture/bytecode/code_data.h, frame_hook.h)."""

import gc
import sys
import threading
import unittest
import weakref

import frame_hook_module as hook
from hook_cases import HookTest, Recorder, outcome, run


class Data(HookTest):
    def function(self, name="made"):
        names = {}
        exec(f"def {name}(x=1):\n    return x", names)
        return names[name]

    def test_life(self):
        class Thing:
            pass

        function, thing = self.function(), Thing()
        gone = weakref.ref(thing)
        self.assertIsNone(hook.get_data(function.__code__))
        hook.set_data(function.__code__, thing)
        self.assertIs(hook.get_data(function.__code__), thing)
        self.assertIsNone(hook.get_data(function.__code__.replace()))
        self.assertEqual(hook.data_count(), 1)
        recorder = Recorder()
        hook.run(recorder, function)
        self.assertIs(recorder.frames[0][2]["data"], thing)
        del thing, recorder
        self.assertIsNotNone(gone())
        del function
        gc.collect()  # a function and its globals
        self.assertIsNone(gone())
        self.assertEqual(hook.data_count(), 0)
        # Replaced and removed.
        function, thing = self.function(), Thing()
        gone = weakref.ref(thing)
        hook.set_data(function.__code__, thing)
        del thing
        hook.set_data(function.__code__, 5)
        self.assertIsNone(gone())
        hook.set_data(function.__code__, None)
        self.assertIsNone(hook.get_data(function.__code__))
        for wrong in 1, function, None:
            with self.assertRaises(TypeError):
                hook.set_data(wrong, 1)
            self.assertIsNone(hook.get_data(wrong))

    def test_cycle(self):
        function = self.function()
        gone = weakref.ref(function.__code__)
        hook.set_data(function.__code__, function)
        del function
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertEqual([code for code, _ in hook.all_data()], [gone()])
        hook.reset()
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(hook.all_data(), [])

    def test_skip(self):
        function = self.function()
        hook.skip(function.__code__, True)
        self.assertEqual(run(lambda: function(3), made=5), (3, ["<lambda>"]))
        self.assertEqual(hook.all_data(), [(function.__code__, None)])
        hook.skip(function.__code__, False)
        self.assertEqual(run(lambda: function(3), made=5), (5, ["<lambda>", "made"]))
        hook.skip(function.__code__, True)
        hook.reset()
        self.assertEqual(run(function, 3, made=5), (5, ["made"]))

    def test_changes_within_the_callback_and_destructors(self):
        events = []

        class Late:
            def __init__(self, name):
                self.name = name

            def __del__(self):
                events.append(self.name)
                hook.set_data(other.__code__, None)
                hook.reset()
                hook.all_data()

        function, other = self.function(), self.function("other")

        def callback(code, slots, flags):
            if code.co_name == "made":
                hook.set_data(other.__code__, Late("other"))
                name = flags["data"].name
                flags.clear()
                hook.reset()
                hook.set_data(code, Late("second"))
                events.append("callback")
                raise KeyError(name)
            return NotImplemented

        hook.set_data(function.__code__, Late("first"))
        with self.assertRaises(KeyError) as caught:
            hook.run(callback, function)
        # The first lives until its callback returned, with the exception that is on its way.
        self.assertEqual(caught.exception.args, ("first",))
        self.assertEqual(events, ["other", "callback", "first", "second"])
        events.clear()
        many = [self.function() for _ in range(50)]
        for number, each in enumerate(many):
            hook.set_data(each.__code__, Late(number))
        self.assertEqual(hook.data_count(), 50)
        del many[::2], each
        gc.collect()
        self.assertEqual(sorted(events), list(range(50)))
        self.assertEqual(hook.data_count(), 0)

    def test_threads(self):
        functions = [self.function() for _ in range(20)]

        def change(seed):
            for i in range(2000):
                code = functions[(i * seed) % 20].__code__
                hook.set_data(code, object())
                hook.get_data(code)
                hook.run(Recorder(), functions[i % 20])
                if i % 100 == 0:
                    hook.reset()
                    functions[i % 20] = self.function()

        threads = [threading.Thread(target=change, args=(seed,)) for seed in (1, 3, 7, 9)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        self.assertLessEqual(hook.data_count(), 20)


class Calls(HookTest):
    def test_parts(self):
        def outer():
            a, b = 1, 2

            def inner(x, *rest, key=5):
                return a, b, x, rest, len("four"), NAME

            return inner

        inner = outer()
        code, cells = inner.__code__, inner.__closure__
        names = {"NAME": "global"}
        names["__builtins__"] = {"len": lambda _: "theirs"}
        code = code.replace(co_kwonlyargcount=0, co_flags=code.co_flags & ~12, co_argcount=3,
                            co_varnames=("x", "key", "rest"))
        self.assertEqual(hook.call_code(code, names, None, cells, [3, 4, 5]), (1, 2, 3, 5, "theirs", "global"))
        ours = {"len": lambda _: "ours"}
        self.assertEqual(hook.call_code(code, names, ours, cells, [3, 4, 5]), (1, 2, 3, 5, "ours", "global"))
        for globals_, closure, error in [(names, None, hook.BytecodeError), (names, cells[:1], hook.BytecodeError),
                                         (names, cells + cells, hook.BytecodeError), (1, cells, hook.BytecodeError),
                                         (names, (1, 2), hook.BytecodeError), (names, [1], SystemError)]:
            for moves in False, True:
                arguments = [3, 4, 5]
                with self.assertRaises(error):
                    hook.call_code(code, globals_, None, closure, arguments, moves)
                self.assertEqual(arguments, [] if moves else [3, 4, 5])
        with self.assertRaisesRegex(TypeError, "inner.. missing 1 required positional argument: 'rest'"):
            hook.call_code(code, names, None, cells, [3, 4])
        with self.assertRaisesRegex(TypeError, "takes 3 positional arguments but 30 were given"):
            hook.call_code(code, names, None, cells, [3] * 30, True)
        many = compile("def f(*args): return args", "<text>", "exec").co_consts[0]
        for count in 0, 1, 16, 17, 100:
            for moves in False, True:
                self.assertEqual(hook.call_code(many, {}, None, None, list(range(count)), moves), tuple(range(count)))

    def test_references(self):
        class Thing:
            pass

        def make():
            cell = None

            def function(a, b):
                return cell, a

            def fails(a, b):
                raise KeyError(cell, a)

            return function, fails

        function, fails = make()
        a, b, builtins_ = Thing(), Thing(), {}
        watched = [a, b, builtins_, function.__code__, fails.__code__, function.__closure__, globals(), None]

        def calls():
            for each in function, fails:
                for moves in False, True:
                    for arguments in [a, b], [a]:
                        outcome(hook.call_code, each.__code__, globals(), builtins_, each.__closure__, arguments, moves)

        def counts():
            gc.collect()
            return [sys.getrefcount(each) for each in watched[:-1]] + [sys.getallocatedblocks()]

        for runner in (lambda: hook.run_by("plain", calls)), calls, (lambda: hook.run(Recorder(), calls)):
            runner()
            before = counts()
            for _ in range(1300):
                runner()
            after = counts()
            self.assertEqual(before[:-1], after[:-1])
            self.assertLess(abs(after[-1] - before[-1]), 200)

    def test_moved_arguments_die_early(self):
        class Thing:
            pass

        def function(a):
            gone = weakref.ref(a)
            del a
            gc.collect()
            return gone() is None

        names = {"weakref": weakref, "gc": gc}

        def call(moves):
            arguments = [Thing()]
            return hook.call_code(function.__code__, names, None, None, arguments, moves)

        def call_from_list(moves):
            return hook.call_code(function.__code__, names, None, None, [Thing()], moves)

        self.assertTrue(hook.run_by("plain", call, True))
        self.assertFalse(call(True))  # no hook
        self.assertFalse(hook.run_by("plain", call, False))

        # A call within the other, which gives up its own arguments alone.
        names.update(hook=hook, names=names, function=function, Thing=Thing)
        text = """def nested(a, b):
            gone = weakref.ref(b)
            inner = hook.call_code(function.__code__, names, None, None, [a], False)
            del b
            moved = hook.call_code(function.__code__, names, None, None, [Thing()], True)
            return inner, gone() is None, moved"""
        nested = compile(text, "<text>", "exec").co_consts[0]
        self.assertEqual(hook.run_by("plain", hook.call_code, nested, names, None, None, [Thing(), Thing()], True),
                         (False, True, True))


if __name__ == "__main__":
    unittest.main()
