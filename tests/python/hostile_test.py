"""What careless and hostile programs do: clear errors, no crash, no wait, no wrong numbers."""

import copy
import ctypes
import errno
import gc
import io
import os
import pickle
import re
import subprocess
import tempfile
import time
import unittest

import numpy as np
import wick
from testing import Case, ticks_while
from typing import Any, List
from wick import autograd, files, jit, lazy, nn, torch

_C = wick._C


def cyclic(*first):
    made = list(first)
    made.append(made)
    return made


def doubled(levels, first):
    """Lists that each hold the one before twice."""
    for _ in range(levels):
        first = [first, first]
    return first


class Containers(Case):
    def test_lists_that_hold_themselves(self):
        x = torch.ones(3)
        for wrong, error in [
            (lambda: torch.tensor(cyclic(1.0)), ValueError),
            (lambda: torch.as_tensor(cyclic(1.0)), ValueError),
            (lambda: torch.tensor(cyclic(1.0), dtype=torch.float32), ValueError),
            (lambda: torch.tensor(cyclic()), ValueError),
            (lambda: x[cyclic(1)], (ValueError, IndexError)),
            (lambda: torch.add(x, cyclic(1.0)), RecursionError),
            (lambda: torch.save(cyclic(1.0), io.BytesIO()), RecursionError),
        ]:
            with self.assertRaises(error):
                wrong()

    def test_shared_lists_are_walked_once(self):
        start = time.time()
        with self.assertRaisesRegex(RuntimeError, "not enough memory"):
            torch.tensor(doubled(50, 1.0))
        made = torch.tensor(doubled(16, 1.0))
        self.assertEqual((made.dim(), made.sum().item()), (16, 2**16))
        with self.assertRaises(TypeError):
            torch.add(torch.ones(1), doubled(30, [1]))
        self.assertLess(time.time() - start, 20)

    def test_what_is_shared_stays_shared(self):
        @jit.script
        def f(a: List[List[int]]) -> List[List[int]]:
            a[0].append(7)
            return a

        inner = [1]
        result = f([inner, inner, [1]])
        self.assertEqual(result, [[1, 7], [1, 7], [1]])
        self.assertIs(result[0], result[1])
        self.assertEqual(inner, [1])

    def test_a_list_of_a_program_that_holds_itself(self):
        @jit.script
        def f():
            a: List[Any] = [1]
            a.append(a)
            return a

        result = f()
        self.assertIs(result[1], result)

        @jit.script
        def g(n: int):
            a: List[Any] = [1]
            for _ in range(n):
                a = torch.jit.annotate(List[Any], [a, a])
            return a

        self.assertEqual(len(g(40)), 2)
        with self.assertRaises(RecursionError):
            g(100000)

    def test_traces_of_shared_containers(self):
        x = torch.ones(2)

        def result(a):
            made = (a + 1,)
            for _ in range(40):
                made = (made, made)
            return made

        start = time.time()
        with self.assertRaisesRegex(RuntimeError, "parts"):
            jit.trace(result, (x,))
        with self.assertRaisesRegex(RuntimeError, "more than 100000 tensors"):
            jit.trace(lambda a: x, (doubled(40, x),))
        self.assertLess(time.time() - start, 20)

    def test_sequences_that_lie(self):
        class Endless:
            def __len__(self):
                return 3

            def __getitem__(self, i):
                return 1.0

        self.assertEqual(torch.tensor(Endless()).tolist(), [1, 1, 1])
        rows = [[1.0]] * 100

        class Clears:
            def __len__(self):
                return 1

            def __getitem__(self, i):
                rows.clear()
                return 2.0

        rows[0] = Clears()
        with self.assertRaises(ValueError):
            torch.tensor(rows)

        class Huge:
            def __len__(self):
                return 10**15

            def __getitem__(self, i):
                return 1.0

        with self.assertRaises((MemoryError, RuntimeError)):
            torch.tensor(Huge())


class Calls(Case):
    def test_members_of_the_class(self):
        x = torch.tensor([1.0, 4.0])
        self.assertEqual(wick.Tensor.sqrt(x).tolist(), [1, 2])
        self.assertEqual(list(map(torch.Tensor.item, x)), [1, 4])
        self.assertEqual(nn.Parameter.hypot(x, x).shape, (2,))
        self.assertTrue(hasattr(wick.Tensor, "cumsum") and not hasattr(wick.Tensor, "not_there"))

    def test_wrong_counts(self):
        plus = _C._expression("+", True)
        for wrong, message in [
            (lambda: wick.Tensor.add(), "Tensor.add: expected at least 1 argument, got 0"),
            (lambda: wick.Tensor.T(), "Tensor.T: expected 1 argument, got 0"),
            (lambda: plus(1), r"\+: expected 2 arguments, got 1"),
            (lambda: plus(1, 2, 3), r"\+: expected 2 arguments, got 3"),
            (lambda: plus(1, b=2), r"\+: expected 2 arguments, got 2"),
        ]:
            with self.assertRaisesRegex(TypeError, message):
                wrong()

    def test_names_are_no_text_of_a_program(self):
        x = torch.ones(3)
        for name in ("other ", "other=a0, alpha", "a b", "", "other\0x", "1"):
            with self.subTest(name), self.assertRaisesRegex(TypeError, "is no name of a parameter"):
                torch.add(x, **{name: x})
        with self.assertRaises(UnicodeEncodeError):
            torch.add(x, **{"\ud800": 1})
        traced = jit.trace(lambda a: a + 1, (x,))
        with self.assertRaises(UnicodeEncodeError):
            traced(**{"\ud800": x})

    def test_nobody_computes_with_dtypes(self):
        x = torch.ones(3)
        for wrong in (lambda: x + torch.float32, lambda: torch.add(x, int), lambda: x * torch.strided,
                      lambda: torch.full([2], torch.int64), lambda: torch.clamp(x, torch.int8)):
            with self.assertRaises(TypeError):
                wrong()
        with self.assertRaisesRegex(TypeError, "a dtype is no number to compute with"):
            torch.add(x, torch.float32)
        for wrong in (lambda: torch.tensor(torch.int64, dtype=torch.int64),
                      lambda: torch.tensor([1, float]), lambda: x.__setitem__(0, torch.float32)):
            with self.assertRaises(TypeError):
                wrong()
        self.assertEqual(x.tolist(), [1, 1, 1])
        self.assertIs(torch.zeros(2, dtype=int).dtype, torch.int64)
        self.assertIs(x.to(torch.int8).dtype, torch.int8)

    def test_calls_that_mean_nothing_are_decided_soon(self):
        x = torch.ones(3)
        for call, most in [
            (lambda f: f(x, True, False, True, 1), 6),
            (lambda f: f([1, 2], [True, False], [3.5], True), 6),
            (lambda f: f(x, [], [], True, "a"), 6),
        ]:
            function = _C._member("torch", "clamp")[1]
            with self.assertRaises(TypeError):
                call(function)
            self.assertLessEqual(function._texts, most)
        stack = _C._member("torch", "add")[1]
        with self.assertRaises(TypeError):
            stack(x, True, True, True)
        self.assertLessEqual(stack._texts, 6)

    def test_dimensions(self):
        x = torch.ones(2, 3)
        self.assertEqual((x.size(dim=1), x.stride(dim=0), x.stride(-1)), (3, 3, 1))
        for wrong, error, message in [
            (lambda: x.size(foo=0), TypeError, r"size\(\) got an unexpected keyword argument 'foo'"),
            (lambda: x.stride(foo=0), TypeError, "unexpected keyword argument 'foo'"),
            (lambda: x.stride(0, 1), TypeError, r"stride\(\) takes at most one dimension"),
            (lambda: x.stride(2), IndexError, r"range of \[-2, 1\], but got 2"),
            (lambda: x.size(-3), IndexError, r"range of \[-2, 1\], but got -3"),
        ]:
            with self.assertRaisesRegex(error, message):
                wrong()

    def test_seeds_and_states(self):
        self.assertEqual(torch.manual_seed(-1).initial_seed(), 2**64 - 1)
        self.assertEqual(torch.manual_seed(2**64 - 1).initial_seed(), 2**64 - 1)
        for seed in (2**64, -(2**63) - 1):
            with self.assertRaisesRegex(ValueError, r"a seed from -2\*\*63 to 2\*\*64 - 1"):
                torch.manual_seed(seed)
        with self.assertRaisesRegex(TypeError, "what get_state.* gave, got wick.Tensor"):
            torch.set_rng_state(torch.ones(3))
        with self.assertRaisesRegex(RuntimeError, f"index {2**70} is out of range"):
            torch.device(2**70)

    def test_objects_that_no_function_made(self):
        for kind in (jit.ScriptFunction, jit.ScriptObject, jit.Graph, _C._Module, _C.HookHandle,
                     _C.FunctionContext, type(_C._Unit()), type(_C._Recording())):
            for make in (kind, lambda kind=kind: kind.__new__(kind)):
                with self.subTest(kind), self.assertRaises(TypeError):
                    make()

        class Pretends:
            @property
            def _c(self):
                return self

        with self.assertRaisesRegex(TypeError, "no form as a value"):
            torch.add(torch.ones(2), Pretends())
        with self.assertRaisesRegex(TypeError, "modules come of script, trace and load, not of int"):
            jit.ScriptModule(3)
        with self.assertRaises(AttributeError):
            jit.ScriptModule.__new__(jit.ScriptModule)()

    def test_recordings_out_of_order(self):
        x = torch.ones(3)
        for wrong, message in [
            (lambda r: r.nodes(), "is not finished"),
            (lambda r: r.constants(), "is not finished"),
            (lambda r: r.function("f"), "is not finished"),
            (lambda r: r.leave_module(None), "no call of a module was entered"),
            (lambda r: (r.start(), r.start()), "has begun already"),
            (lambda r: (r.add_input("x", x), r.finish(x), r.finish(x)), "is finished already"),
        ]:
            recording = _C._Recording()
            with self.subTest(message), self.assertRaisesRegex(TypeError, message):
                wrong(recording)
            recording.stop()


class Memory(Case):
    def take(self, x, change):
        """What others see of a tensor's memory once the tensor has changed and much else was made."""
        views = [x.numpy(), np.asarray(memoryview(x)), np.from_dlpack(x)]
        change(x)
        others = [torch.full((1000000,), 7.0) for _ in range(4)]
        for view in views:
            self.assertEqual((view[0], view[-1]), (1, 1))
        return others

    def test_a_tensor_that_is_given_other_memory(self):
        self.take(torch.ones(1000000), lambda x: setattr(x, "data", torch.zeros(1)))
        self.take(torch.ones(1000000), lambda x: x.set_(torch.zeros(1)))

    def test_a_tensor_that_grows(self):
        def grow(x):
            for each in (x, x[:]):
                with self.assertRaisesRegex(RuntimeError, "not resizable"):
                    each.resize_(4000000)
            with self.assertRaisesRegex(RuntimeError, "not resizable"):
                torch.add(torch.ones(2000000), 1, out=x)

        self.take(torch.ones(1000000), grow)
        x = torch.ones(3)
        x.numpy(), x.__dlpack__()
        gc.collect()
        self.assertEqual(x.resize_(5).shape, (5,))
        self.assertEqual(torch.from_numpy(np.ones(3)).resize_(9).shape, (9,))

    def test_booleans_of_other_bytes(self):
        wrong = np.array([0, 1, 2, 3], dtype=np.uint8)
        for make in (lambda: torch.from_numpy(wrong.view(bool)),
                     lambda: torch.frombuffer(wrong.tobytes(), dtype=torch.bool),
                     lambda: torch.tensor(wrong.view(bool)),
                     lambda: _C._tensor_of_bytes(wrong.tobytes(), torch.bool, [4])):
            with self.assertRaisesRegex(ValueError, "booleans whose bytes are 0 and 1"):
                make()
        table = np.zeros(3, [("a", "u1"), ("b", "?")])
        table["a"] = 9
        self.assertEqual(torch.from_numpy(table["b"]).tolist(), [False] * 3)
        self.assertEqual(torch.from_numpy(np.broadcast_to(np.True_, (10**12,))).shape, (10**12,))

    def test_quantized_elements_without_a_quantizer(self):
        q = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
        for make in (lambda: torch.frombuffer(b"abcd", dtype=torch.qint8),
                     lambda: torch.tensor([1], dtype=torch.qint8), lambda: torch.tensor([q, q]),
                     lambda: torch.as_tensor(np.ones(2), dtype=torch.quint8)):
            with self.assertRaisesRegex((TypeError, RuntimeError), "expected a dtype"):
                make()
        self.assertTrue(torch.equal(torch.tensor(q).dequantize(), q.dequantize()))

    def test_arguments_of_dlpack(self):
        x = torch.ones(3)
        for name, wrong in (("max_version", "a"), ("max_version", (1,)), ("dl_device", 3)):
            with self.assertRaisesRegex(TypeError, f"a tuple of two ints as {name}"):
                x.__dlpack__(**{name: wrong})
        with self.assertRaises(OverflowError):
            x.__dlpack__(max_version=(2**70, 0))

    def test_columns(self):
        buffer = ctypes.pythonapi.PyObject_GetBuffer
        buffer.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
        view = ctypes.create_string_buffer(200)
        for wrong, flags in ((torch.ones(2, 3), 0x58), (torch.ones(2, 3).t(), 0x38)):
            with self.assertRaisesRegex(BufferError, "not contiguous"):
                buffer(wrong, view, flags)

    def test_numpy_leaves_operators_to_tensors(self):
        x = torch.ones(3)
        for made in (np.float32(2) * x, x * np.float32(2), x * np.full(3, 2, "f"), np.add(x, x),
                     x + np.array(1.0)):
            self.assertIsInstance(made, wick.Tensor)
            self.assert_same(made, np.full(3, 2, "f"))
        with self.assertRaises(TypeError):
            np.ones(3) * x

    def test_copies_on_other_devices(self):
        for make in (lambda: torch.ones(3, device="lazy") + 1, lambda: torch.ones(3) + 1):
            for other in (pickle.loads(pickle.dumps(make())), copy.copy(make()),
                          copy.deepcopy(make())):
                self.assertEqual((other.tolist(), other.device), ([2, 2, 2], make().device))
        meta = pickle.loads(pickle.dumps(torch.ones(3, device="meta")))
        self.assertEqual((meta.device.type, meta.shape), ("meta", (3,)))
        with self.assertRaisesRegex(TypeError, "expected a dense tensor on the CPU"):
            _C._bytes_of(torch.ones(3, device="lazy"))
        x = torch.ones(2, requires_grad=True)
        y = copy.copy(x)
        self.assertEqual((y.data_ptr(), y.requires_grad, y is x), (x.data_ptr(), True, False))
        p = nn.Parameter(torch.ones(2))
        self.assertIs(type(copy.copy(p)), nn.Parameter)

    def test_data_of_another_kind(self):
        x = torch.ones(2, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "floating-point or complex data, not int64"):
            x.data = torch.ones(2, dtype=torch.int64)


class Callbacks(Case):
    def test_contexts_end_with_an_exception_too(self):
        kept = []

        class Fails(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                kept.append(ctx)
                raise ValueError("in forward")

        with self.assertRaisesRegex(ValueError, "in forward"):
            Fails.apply(torch.ones(3, requires_grad=True))
        for use in (lambda c: c.saved_tensors, lambda c: c.save_for_backward(torch.ones(1)),
                    lambda c: c.needs_input_grad[0]):
            with self.assertRaisesRegex(RuntimeError, "only valid within forward and backward"):
                use(kept[0])

    def test_exceptions_come_out_themselves(self):
        class Own(Exception):
            def __init__(self, text, number):
                super().__init__(text)
                self.number = number

        def raised_by(error):
            x = torch.ones(3, requires_grad=True)
            y = x * 2

            def hook(gradient):
                raise error

            y.register_hook(hook)
            try:
                y.sum().backward()
            except BaseException as found:
                return found

        for error in (Own("mine", 3), KeyError("k"), UnicodeDecodeError("utf-8", b"a", 0, 1, "r"),
                      OSError(2, "no"), StopIteration(3), KeyboardInterrupt()):
            found = raised_by(error)
            self.assertIs(found, error)
            self.assertTrue(any(f.f_code.co_name == "hook" for f in self.frames(found)))
        # What came out is forgotten.
        gone = Own("gone", 1)
        raised_by(gone)
        gone.__traceback__ = None
        self.assertEqual(len([r for r in gc.get_referrers(gone) if isinstance(r, list)]), 0)

    @staticmethod
    def frames(error):
        trace = error.__traceback__
        while trace:
            yield trace.tb_frame
            trace = trace.tb_next

    def test_exceptions_through_programs(self):
        class Own(Exception):
            pass

        @jit.ignore
        def asks(n: int) -> int:
            raise Own("asked")

        @jit.script
        def f(n: int) -> int:
            return asks(n) + 1

        with self.assertRaisesRegex(Own, "asked") as caught:
            f(1)
        self.assertIn("asks(n) + 1", "".join(caught.exception.__notes__))

    def test_hooks_are_functions(self):
        with self.assertRaisesRegex(TypeError, "register_hook: expected a function, got int"):
            torch.ones(3, requires_grad=True).register_hook(3)
        with self.assertRaisesRegex(TypeError, "accumulate_grad_hook"):
            _C._register_post_accumulate_hook(torch.ones(3, requires_grad=True), 3)


class Files(Case):
    def test_names(self):
        for use in (torch.load, lambda p: torch.save(1, p), files.load_tensors, jit.load,
                    lambda p: files.save_tensors({"a": torch.ones(1)}, p),
                    jit.trace(lambda x: x + 1, (torch.ones(1),)).save):
            with self.assertRaisesRegex(ValueError, "embedded null byte"):
                use("/tmp/a\0b")
            with self.assertRaises(TypeError):
                use(3)

    def test_files_that_are_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "näme.pt")
            for use in (torch.load, wick.load, jit.load, files.load_tensors):
                with self.assertRaises(FileNotFoundError) as caught:
                    use(path)
                self.assertIsInstance(caught.exception, wick.LoadError)
                self.assertEqual(caught.exception.errno, errno.ENOENT)
                self.assertEqual(caught.exception.filename, path)
                self.assertEqual(str(caught.exception),
                                 f"[Errno 2] No such file or directory: {path!r}")
                with self.assertRaises(IsADirectoryError) as caught:
                    use(folder)
                self.assertIsInstance(caught.exception, wick.LoadError)
                self.assertEqual(caught.exception.errno, errno.EISDIR)
                with self.assertRaises(OSError) as caught:
                    use("/dev/null")
                self.assertIsInstance(caught.exception, wick.LoadError)
            if os.geteuid() != 0:  # root may read everything
                torch.save(1, path)
                os.chmod(path, 0)
                with self.assertRaises(PermissionError) as caught:
                    torch.load(path)
                self.assertIsInstance(caught.exception, wick.LoadError)

    def test_files_of_another_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            def written(name, contents):
                path = os.path.join(folder, name)
                with open(path, "wb") as file:
                    file.write(contents)
                return path

            state = os.path.join(folder, "state.pth")
            torch.save(nn.Linear(2, 3).state_dict(), state)
            tensors = os.path.join(folder, "w.safetensors")
            files.save_tensors({"w": torch.ones(2)}, tensors)
            module = os.path.join(folder, "module.pt")
            jit.trace(nn.Linear(2, 2), (torch.ones(1, 2),)).save(module)
            page = written("page.pt", b"<!doctype html><html>")
            pointer = written("pointer.pt", b"version https://git-lfs.github.com/spec/v1\noid x\n")
            script = written("script.pt", b"def f(x):\n    return x\n")
            pickled = written("net.pt", b"\x80\x02cmodels\nNet\n.")
            for use, path, message in [
                (jit.load, state, "holds a state dict, 2 tensors (weight, …) without the program that "
                                  "uses them; wick.load reads it, and a module's load_state_dict"),
                (jit.load, tensors, "is a safetensors file: tensors by name, no program; "
                                    "wick.files.load_tensors reads it"),
                (torch.load, tensors, "wick.files.load_tensors reads it"),
                (torch.load, module, "is a program that torch.jit.save wrote; wick.jit.load loads it"),
                (files.load_tensors, module, "wick.jit.load loads it, and state_dict() has its"),
                (jit.load, page, "is a web page; download the file again"),
                (torch.load, page, "is a web page; download the file again"),
                (files.load_tensors, page, "is a web page; download the file again"),
                (jit.load, pointer, '"git lfs pull"'),
                (jit.load, script, "is text; if it is a script, wick.jit.CompilationUnit"),
                (jit.load, pickled, "is a Python pickle"),
            ]:
                with self.assertRaisesRegex(wick.LoadError, "^" + re.escape(path + " ")) as caught:
                    use(path)
                self.assertIn(message, str(caught.exception))
            with open(module, "rb") as file:
                with self.assertRaisesRegex(wick.LoadError, "^<memory> is a program .*wick.jit.load"):
                    torch.load(file)

    def test_weights_only(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "value.pt")
            torch.save({"a": 1}, path)
            for choice in (True, False):
                self.assertEqual(torch.load(path, weights_only=choice), {"a": 1})

    def test_files_that_read_text(self):
        for use in (torch.load, jit.load):
            with self.assertRaisesRegex(TypeError, "reads bytes, got str"):
                use(io.StringIO("/etc/passwd"))

    def test_modules(self):
        traced = jit.trace(nn.Linear(2, 2), (torch.ones(1, 2),))
        for wrong, error, message in [
            (lambda: jit.save(3, "x"), TypeError, "save: expected a ScriptModule or ScriptFunction"),
            (lambda: jit.freeze(3), TypeError, "freeze: expected a ScriptModule, got int"),
            (lambda: jit.optimize_for_inference(3), TypeError, "expected a ScriptModule, got int"),
            (lambda: traced.train("a"), ValueError, "training mode is expected to be boolean"),
            (lambda: jit.CompilationUnit(3), TypeError, "expected the text of a program, got int"),
            (lambda: jit.save(traced, io.BytesIO(), {"a": 3}), TypeError,
             "extra file 'a': expected str or bytes, got int"),
            (lambda: jit.save(traced, io.BytesIO(), {3: "a"}), TypeError,
             "expected a str as a name, got int"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(error, message):
                wrong()
        lazy.set_cache_size(2**70)
        lazy.set_cache_size(512)


class Signals(Case):
    def interrupted(self, work, after=0.3):
        """How long the work went on after the signal."""
        start = time.time()
        # From another process: a thread would wait for the interpreter.
        command = f"sleep {after}; kill -INT {os.getpid()}"
        with subprocess.Popen(["sh", "-c", command]), self.assertRaises(KeyboardInterrupt):
            work()
            time.sleep(30)
        return time.time() - start - after

    def test_walks_over_elements(self):
        many = [1.0] * 3000000
        for work in (lambda: [torch.tensor([many, many[:]]) for _ in range(100)],
                     lambda: [torch.zeros(30000000).tolist() for _ in range(100)]):
            self.assertLess(self.interrupted(work), 5)

    def test_lazy_values(self):
        def work(look):
            for _ in range(100):
                x = torch.rand(1500, 1500, device="lazy")
                for _ in range(200):
                    x = x @ x * 0.001
                look(x)

        for look in (lambda x: x.sum().item(), lambda x: x.tolist(), lambda x: lazy.mark_step()):
            self.assertLess(self.interrupted(lambda: work(look)), 5)

    def test_others_run_while_a_lazy_value_is_computed(self):
        x = torch.rand(1000, 1000, device="lazy")
        for _ in range(30):
            x = x @ x * 0.001
        self.assertGreater(ticks_while(lambda: x.sum().item()), 20)


if __name__ == "__main__":
    unittest.main()
