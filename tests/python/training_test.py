"""Gradients, layers and optimizers."""

import gc
import math
import os
import re
import tempfile
import unittest
import weakref

import numpy as np
import wick
from testing import Case, needs_pytorch
from wick import autograd, jit, nn, optim, torch


class Gradients(Case):
    def test_walks(self):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = (x**3).sum()
        self.assertIn("grad_fn=<SumBackward0>", repr(y))
        (first,) = autograd.grad(y, x, create_graph=True)
        self.assertEqual(first.tolist(), [3, 12])
        (second,) = autograd.grad(first.sum(), x)
        self.assertEqual(second.tolist(), [6, 12])
        y = x * 2
        y.backward(torch.tensor([1.0, 10.0]))
        self.assertEqual(x.grad.tolist(), [2, 20])
        with self.assertRaisesRegex(RuntimeError, "scalar outputs"):
            (x * 2).backward()
        with self.assertRaises(RuntimeError):
            autograd.grad(x.sum(), torch.ones(1, requires_grad=True))

    def test_views_that_were_not_recorded(self):
        # Values of PyTorch 1.13. Such a view is a leaf of its own.
        y = torch.ones(2, 4, requires_grad=True)
        with torch.no_grad():
            v = y[0]
        self.assertEqual((v.requires_grad, v.is_leaf), (True, True))
        (v * 2).sum().backward()
        self.assertIsNone(y.grad)
        self.assertEqual(v.grad.tolist(), [2, 2, 2, 2])
        # Neither does a view know of it that was made before its base required a gradient.
        b = torch.zeros(3)
        v = b[:2]
        b.requires_grad_()
        self.assertEqual((v.requires_grad, v.is_leaf), (True, True))
        (v * 2).sum().backward()
        self.assertIsNone(b.grad)
        # A write to the base brings the view onto the tape.
        b, w = torch.zeros(3), torch.ones(3, requires_grad=True)
        v = b[:2]
        b.add_(w)
        self.assertEqual((v.requires_grad, v.is_leaf), (True, False))
        (v * 2).sum().backward()
        self.assertEqual(w.grad.tolist(), [2, 2, 0])
        # That is refused for a view that was made without gradients.
        h = torch.ones(3, requires_grad=True) * 2
        with torch.no_grad():
            v = h[:2]
        h.mul_(3)
        with self.assertRaisesRegex(RuntimeError, "A view was created in no_grad mode and its base"):
            (v * 2).sum().backward()

    def test_views_that_were_not_recorded_in_scripts(self):
        class Model(nn.Module):
            def forward(self, y):
                with torch.no_grad():
                    v = y[0]
                return (v * 2).sum() + (y * 3).sum()

        scripted = jit.script(Model())
        for _ in range(4):
            y = torch.ones(2, 4, requires_grad=True)
            scripted(y).backward()
            self.assertEqual(y.grad.tolist(), [[3] * 4] * 2)

    def test_modes(self):
        x = torch.ones(1, requires_grad=True)
        with torch.no_grad():
            self.assertFalse((x * 2).requires_grad)
            with torch.enable_grad():
                self.assertTrue((x * 2).requires_grad)
        self.assertTrue((x * 2).requires_grad)

        @torch.no_grad()
        def f():
            return x * 2

        self.assertFalse(f().requires_grad)
        torch.set_grad_enabled(False)
        self.assertFalse(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        with torch.set_grad_enabled(False):
            self.assertFalse(torch.is_grad_enabled())
        self.assertTrue(torch.is_grad_enabled())
        with self.assertRaises(RuntimeError):
            torch.ones(1, dtype=torch.int64, requires_grad=True)

    def test_hooks(self):
        x = torch.ones(2, requires_grad=True)
        seen = []
        handle = x.register_hook(lambda g: seen.append(g.tolist()))
        y = x * 3
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        self.assertEqual((seen, x.grad.tolist()), ([[6, 6]], [6, 6]))
        handle.remove()
        (x * 1).sum().backward()
        self.assertEqual(len(seen), 1)

        def fails(g):
            raise KeyError("lost")

        z = x * 1
        z.register_hook(fails)
        with self.assertRaisesRegex(KeyError, "lost"):
            z.sum().backward()

    def test_functions(self):
        class Cube(autograd.Function):
            @staticmethod
            def forward(ctx, x, scale):
                ctx.save_for_backward(x)
                ctx.scale = scale
                return x**3 * scale

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                assert ctx.needs_input_grad[0]
                return 3 * x**2 * ctx.scale * grad, None

        x = torch.tensor([2.0], requires_grad=True)
        Cube.apply(x, 10).backward()
        self.assertEqual(x.grad.tolist(), [120])
        (first,) = autograd.grad(Cube.apply(x, 1), x, create_graph=True)
        self.assertEqual(autograd.grad(first, x)[0].tolist(), [12])

        class Two(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                return a * 2 + b * 3

        a, b = Two.apply(x)
        x.grad = None
        (a + b).backward()
        self.assertEqual(x.grad.tolist(), [5])

        class Fails(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                raise ZeroDivisionError("nothing")

        with self.assertRaisesRegex(ZeroDivisionError, "nothing"):
            Fails.apply(x).backward()

    def test_checkpoints(self):
        layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
        x = torch.randn(4, 3, requires_grad=True)
        calls = []

        def part(x, factor):
            calls.append(factor)
            return layer(x) * factor

        torch.manual_seed(3)
        part(x, 2.0).sum().backward()
        expected = [x.grad, layer[0].weight.grad]
        x.grad = None
        layer.zero_grad()
        torch.manual_seed(3)
        result = torch.utils.checkpoint.checkpoint(part, x, 2.0)
        result.sum().backward()
        self.assert_same([x.grad, layer[0].weight.grad], expected, 1e-6)
        self.assertEqual(len(calls), 3)

    def test_contexts_end(self):
        class Keep(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.note = Note()
                notes.append(weakref.ref(ctx.note))
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                return grad

        class Note:
            pass

        notes = []
        y = Keep.apply(torch.ones(1, requires_grad=True))
        y.backward()
        del y
        gc.collect()
        self.assertIsNone(notes[0]())


class Files(Case):
    @needs_pytorch
    def test_torch_save_keeps_what_requires_gradients(self):
        import torch as reference

        linear = wick.nn.Linear(2, 2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "value.pt")
            torch.save({"weight": linear.weight, "state": linear.state_dict(), "script": wick.jit.script(linear).state_dict()}, path)
            for read in (torch.load(path), reference.load(path)):
                self.assertTrue(read["weight"].requires_grad)
                self.assertFalse(read["state"]["weight"].requires_grad)
                self.assertFalse(read["script"]["weight"].requires_grad)

    def test_torch_save(self):
        plain = [1, 2.5, "text", None, (True,)]
        value = {"a": torch.arange(3), "b": plain, "c": {"d": torch.ones(2)}}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "value.pt")
            torch.save(value, path)
            found = torch.load(path)
            self.assertEqual(found["b"], value["b"])
            self.assert_same(found["a"], value["a"])
            self.assert_same(found["c"]["d"], value["c"]["d"])
            with open(path, "rb") as file:
                self.assert_same(torch.load(file)["a"], value["a"])
            with self.assertRaises(wick.LoadError):
                torch.load(os.path.join(folder, "none.pt"))
            with self.assertRaises(TypeError):
                torch.save({"a": object()}, path)
            self.assertEqual(str(torch.load(path, map_location="meta")["a"].device), "meta")
            self.assert_same(torch.load(path, map_location=lambda s, name: s)["a"], value["a"])
            self.assert_same(torch.load(path, map_location={"cpu": torch.device("cpu")})["a"], value["a"])
            for end in (".safetensors", ".npz", ".pt"):
                path = os.path.join(folder, "tensors" + end)
                wick.files.save_tensors({"x": torch.ones(2), "y": torch.arange(3)}, path)
                found = wick.files.load_tensors(path)
                self.assertEqual({k: v.tolist() for k, v in found.items()},
                                 {"x": [1, 1], "y": [0, 1, 2]})


LAYERS = [
    (lambda m: m.Linear(4, 3), (2, 4)),
    (lambda m: m.Conv1d(4, 6, 3, padding=1, groups=2), (2, 4, 5)),
    (lambda m: m.Conv2d(3, 4, 3, stride=2, padding=1), (2, 3, 6, 6)),
    (lambda m: m.Conv2d(3, 4, 4, padding="same", bias=False), (2, 3, 6, 6)),
    (lambda m: m.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), (2, 3, 6, 6)),
    (lambda m: m.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), (2, 3, 4, 4)),
    (lambda m: m.BatchNorm1d(4), (5, 4)),
    (lambda m: m.BatchNorm2d(3), (2, 3, 4, 4)),
    (lambda m: m.LayerNorm(4), (2, 3, 4)),
    (lambda m: m.GroupNorm(2, 4), (2, 4, 3)),
    (lambda m: m.InstanceNorm2d(3), (2, 3, 4, 4)),
    (lambda m: m.MaxPool2d(2), (1, 2, 4, 4)),
    (lambda m: m.AvgPool2d(2, padding=1), (1, 2, 4, 4)),
    (lambda m: m.AdaptiveAvgPool2d(1), (1, 2, 4, 4)),
    (lambda m: m.MaxPool1d(2), (1, 2, 5)),
    (lambda m: m.MaxPool3d(2), (1, 2, 4, 4, 5)),
    (lambda m: m.AvgPool1d(2), (1, 2, 5)),
    (lambda m: m.AvgPool3d(2, padding=1), (1, 2, 4, 4, 5)),
    (lambda m: m.AdaptiveAvgPool1d(2), (1, 2, 5)),
    (lambda m: m.AdaptiveAvgPool3d(2), (1, 2, 4, 4, 5)),
    (lambda m: m.AdaptiveMaxPool1d(2), (1, 2, 5)),
    (lambda m: m.AdaptiveMaxPool2d((2, 3)), (1, 2, 4, 5)),
    (lambda m: m.AdaptiveMaxPool3d(2), (1, 2, 4, 4, 5)),
    (lambda m: m.ZeroPad2d(1), (1, 2, 4, 4)),
    (lambda m: m.ConstantPad1d((1, 2), 0.5), (2, 3, 4)),
    (lambda m: m.ReflectionPad1d(1), (2, 3, 4)),
    (lambda m: m.ReflectionPad2d((1, 0, 2, 1)), (1, 2, 4, 4)),
    (lambda m: m.ReplicationPad2d(1), (1, 2, 4, 4)),
    (lambda m: m.ReplicationPad3d(1), (1, 2, 3, 4, 4)),
    (lambda m: m.PixelUnshuffle(2), (1, 2, 4, 4)),
    (lambda m: m.PReLU(), (3, 4)),
    (lambda m: m.GELU(), (3, 4)),
    (lambda m: m.ELU(), (3, 4)),
    (lambda m: m.SiLU(), (3, 4)),
    (lambda m: m.Softplus(), (3, 4)),
    (lambda m: m.LogSoftmax(1), (3, 4)),
    (lambda m: m.Softmin(1), (3, 4)),
    (lambda m: m.CELU(0.7), (3, 4)),
    (lambda m: m.GLU(), (3, 4)),
    (lambda m: m.LogSigmoid(), (3, 4)),
    (lambda m: m.Softsign(), (3, 4)),
    (lambda m: m.Tanhshrink(), (3, 4)),
    (lambda m: m.Hardshrink(0.3), (3, 4)),
    (lambda m: m.Softshrink(0.3), (3, 4)),
    (lambda m: m.Sequential(m.Linear(4, 4), m.ReLU(), m.Linear(4, 2)), (3, 4)),
    (lambda m: m.RNN(4, 3, bidirectional=True), (5, 2, 4)),
    (lambda m: m.GRU(4, 3, 2, batch_first=True), (2, 5, 4)),
    (lambda m: m.LSTM(4, 3, 2, bidirectional=True), (5, 2, 4)),
    (lambda m: m.LSTM(4, 3), (5, 4)),
    (lambda m: m.GRU(4, 3, batch_first=True), (5, 4)),
    (lambda m: m.RNN(4, 3, nonlinearity="relu"), (5, 4)),
    (lambda m: m.GRUCell(4, 3), (2, 4)),
    (lambda m: m.LSTMCell(4, 3), (2, 4)),
    (lambda m: m.TransformerEncoder(m.TransformerEncoderLayer(8, 2, 16, 0.0), 2), (5, 2, 8)),
    (lambda m: m.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", norm_first=True), (5, 2, 8)),
]


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


class Layers(Case):
    def test_all_run(self):
        for make, shape in LAYERS:
            layer = make(nn)
            with self.subTest(layer):
                x = torch.randn(shape, requires_grad=True)
                total = sum(leaf.sum() for leaf in leaves(layer(x)))
                total.backward()
                self.assertEqual(x.grad.shape, shape)
                for name, p in layer.named_parameters():
                    self.assertIsNotNone(p.grad, name)

    def test_all_compile(self):
        for make, shape in LAYERS:
            layer = make(nn)
            with self.subTest(layer):
                x = torch.randn(shape)
                self.assert_same(leaves(jit.script(layer)(x)), leaves(layer(x)), 0)

    def test_recurrent_layers_take_a_state_and_other_weights(self):
        for make in (nn.LSTM, nn.GRU, nn.RNN):
            for layer in (make(4, 3), jit.script(make(4, 3))):
                with self.subTest(make=make, layer=type(layer)):
                    whole, _ = layer(torch.ones([6, 2, 4]))
                    first, state = layer(torch.ones([2, 2, 4]))
                    second, _ = layer(torch.ones([4, 2, 4]), state)
                    self.assert_same(torch.cat([first, second]), whole, 1e-6)
        layer = nn.GRU(4, 3)
        layer.weight_ih_l0 = nn.Parameter(torch.zeros([9, 4]))
        self.assertTrue(layer._flat_weights[0] is layer.weight_ih_l0)

    @needs_pytorch
    def test_all_are_those_of_pytorch(self):
        import torch as reference

        for make, shape in LAYERS:
            theirs, ours = make(reference.nn), make(nn)
            with self.subTest(ours):
                state = {
                    k: torch.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()
                }
                self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
                ours.load_state_dict(state)
                array = np.random.RandomState(0).randn(*shape).astype("f")
                x = torch.from_numpy(array).requires_grad_()
                y = reference.from_numpy(array.copy()).requires_grad_()
                found, expected = leaves(ours(x)), leaves(theirs(y))
                self.assert_same(found, expected, 1e-4)
                sum((leaf**2).sum() for leaf in found).backward()
                sum((leaf**2).sum() for leaf in expected).backward()
                self.assert_same(x.grad, y.grad, 1e-3)
                for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
                    self.assert_same(p.grad, q.grad, 1e-3)
                with tempfile.NamedTemporaryFile(suffix=".pt") as file:
                    torch.save(ours.state_dict(), file.name)
                    theirs.load_state_dict(reference.load(file.name))

    @needs_pytorch
    def test_losses(self):
        import torch as reference

        rng = np.random.RandomState(0)
        x, y = rng.randn(4, 3).astype("f"), rng.rand(4, 3).astype("f")
        classes = np.array([0, 2, 1, 1])
        for name, target, arguments in [
            ("MSELoss", y, {}),
            ("L1Loss", y, {"reduction": "sum"}),
            ("SmoothL1Loss", y, {}),
            ("HuberLoss", y, {"delta": 0.5}),
            ("CrossEntropyLoss", classes, {"label_smoothing": 0.1}),
            ("NLLLoss", classes, {}),
            ("BCEWithLogitsLoss", y, {}),
            ("KLDivLoss", y, {"reduction": "batchmean"}),
        ]:
            with self.subTest(name):
                found = getattr(nn, name)(**arguments)(torch.tensor(x), torch.tensor(target))
                expected = getattr(reference.nn, name)(**arguments)(
                    reference.tensor(x), reference.tensor(target)
                )
                self.assert_same(found, expected, 1e-5)
        sign = np.array([1, -1, 1, -1], dtype="f")
        steps = np.log(rng.dirichlet(np.ones(5), (6, 2))).astype("f")
        for name, inputs, arguments in [
            ("MarginRankingLoss", [x[:, 0], y[:, 0], sign], {"margin": 0.3}),
            ("CosineEmbeddingLoss", [x, y, sign], {"margin": 0.2}),
            ("TripletMarginLoss", [x, y, y + 1], {"swap": True}),
            ("CTCLoss", [steps, np.array([[1, 2], [3, 3]]), np.array([6, 5]), np.array([2, 2])],
             {"reduction": "sum"}),
        ]:
            with self.subTest(name):
                loss = getattr(nn, name)(**arguments)
                expected = getattr(reference.nn, name)(**arguments)(
                    *[reference.from_numpy(each.copy()) for each in inputs]
                )
                ours = [torch.tensor(each) for each in inputs]
                self.assert_same(loss(*ours), expected, 1e-5)
                self.assert_same(jit.script(loss)(*ours), expected, 1e-5)

    def test_modules(self):
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        self.assertEqual([n for n, _ in net.named_parameters()],
                         ["0.weight", "0.bias", "1.weight", "1.bias"])
        self.assertIn("1.running_mean", net.state_dict())
        with self.assertRaisesRegex(RuntimeError, "Missing key"):
            net.load_state_dict({})
        with self.assertRaisesRegex(RuntimeError, "size mismatch"):
            net.load_state_dict({**net.state_dict(), "0.bias": torch.ones(5)})
        with self.assertRaises(TypeError):
            net[0].weight = 3
        with self.assertRaises(AttributeError):
            net.nothing
        net.double()
        self.assertIs(net[0].weight.dtype, torch.float64)
        self.assertIs(net[1].num_batches_tracked.dtype, torch.int64)
        self.assertIsInstance(net[0].weight, nn.Parameter)
        seen = []
        handle = net.register_forward_hook(lambda m, args, result: seen.append(result.shape))
        net(torch.ones(2, 2, dtype=torch.float64))
        handle.remove()
        net(torch.ones(2, 2, dtype=torch.float64))
        self.assertEqual(seen, [(2, 3)])
        self.assertIn("(0): Linear(in_features=2, out_features=3, bias=True)", repr(net))

    def test_messages(self):
        conv = nn.Conv2d(4, 4, 3)
        for wrong, error, message in [
            (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "3 and 4 channels in 2 groups"),
            (lambda: nn.Conv2d(3, 4, 3, groups=0), ValueError, "3 and 4 channels in 0 groups"),
            (lambda: nn.GroupNorm(2, 5), ValueError, "divisible by num_groups, got 5 and 2"),
            (lambda: nn.GroupNorm(0, 5), ValueError, "divisible by num_groups, got 5 and 0"),
            (lambda: nn.Dropout(1.5), ValueError, "between 0 and 1, but got 1.5"),
            (lambda: nn.MultiheadAttention(5, 2), ValueError, "by num_heads, got 5 and 2"),
            (lambda: nn.TransformerEncoderLayer(4, 2, activation="sin"), ValueError,
             "activation must be relu or gelu, not sin"),
            (lambda: nn.LSTM(3, 4)(torch.ones(2, 5)), RuntimeError,
             "input.size(-1) must be equal to input_size. Expected 3, got 5"),
            (lambda: nn.RNN(2, 2, nonlinearity="sin"), ValueError, "unknown nonlinearity 'sin'"),
            (lambda: nn.MSELoss("most"), ValueError, "most is not a valid value for reduction"),
            (lambda: nn.init.xavier_uniform_(torch.ones(3)), ValueError,
             "two dimensions at least, got 1"),
            (lambda: nn.init.calculate_gain("sin"), ValueError, "unsupported nonlinearity sin"),
            (lambda: nn.Module()(1), NotImplementedError, "Module has no forward"),
            (lambda: setattr(conv, "weight", 3), TypeError, "cannot assign a int as 'weight'"),
            (lambda: conv.not_there, AttributeError, "'Conv2d' object has no attribute 'not_there'"),
            (lambda: conv.register_parameter("p", torch.ones(1)), TypeError,
             "expected a Parameter as 'p', got Tensor"),
            (lambda: conv.register_buffer("b", 3), TypeError, "expected a Tensor as 'b', got int"),
            (lambda: conv.add_module("m", 3), TypeError, "expected a Module as 'm', got int"),
            (lambda: conv.add_module("a.b", None), KeyError, "'a.b' is no name for a part"),
            (lambda: conv.register_buffer("forward", None), KeyError, "'forward' already exists"),
            (lambda: conv.get_submodule("a.b"), AttributeError, "no submodule 'a.b'"),
            (lambda: conv.to(torch.int64), TypeError, "a floating-point one, not torch.int64"),
            (lambda: conv.load_state_dict({}), RuntimeError, "loading state_dict for Conv2d"),
            (lambda: conv.load_state_dict(3), TypeError, "a dict of tensors as the state, got int"),
            (lambda: conv.load_state_dict({**conv.state_dict(), "bias": 3}), RuntimeError,
             "expected a Tensor as bias, got int"),
            (lambda: autograd.backward([torch.ones(1)], [None, None]), RuntimeError,
             "backward: got 1 tensors, but 2 gradients"),
            (lambda: autograd.grad([torch.ones(1)], [], [None, None]), RuntimeError,
             "grad: got 1 outputs, but 2 gradients"),
            (lambda: autograd.Function.apply(torch.ones(1)), NotImplementedError,
             "a Function needs a forward"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(error, re.escape(message)):
                wrong()


OPTIMIZERS = [
    lambda m, p: m.SGD(p, 0.1),
    lambda m, p: m.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    lambda m, p: m.Adam(p, 0.01, weight_decay=0.1),
    lambda m, p: m.Adam(p, 0.01, amsgrad=True),
    lambda m, p: m.AdamW(p, 0.01),
    lambda m, p: m.RMSprop(p, 0.01, momentum=0.5, centered=True),
    lambda m, p: m.Adagrad(p, 0.1, lr_decay=0.1),
]


class Optimizers(Case):
    def run_steps(self, module, make, steps=8):
        parameter = module.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
        optimizer = make(module.optim, [parameter])
        for i in range(steps):
            optimizer.zero_grad()
            ((parameter - i) ** 2).sum().backward()
            optimizer.step()
        return parameter, optimizer

    def test_training(self):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        x = torch.rand(64, 2)
        y = (x[:, :1] * x[:, 1:]).detach()
        for make in OPTIMIZERS:
            optimizer = make(optim, net.parameters())
            scheduler = optim.lr_scheduler.StepLR(optimizer, 50)
            losses = []
            for _ in range(30):
                optimizer.zero_grad()
                loss = nn.MSELoss()(net(x), y)
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                losses.append(loss.item())
            self.assertTrue(math.isfinite(losses[-1]))
        self.assertLess(losses[-1], 0.05)

    def test_states(self):
        for make in OPTIMIZERS:
            parameter, optimizer = self.run_steps(torch, make)
            copy = make(optim, [parameter.detach().clone().requires_grad_()])
            copy.load_state_dict(optimizer.state_dict())
            self.assertEqual(copy.state_dict()["param_groups"],
                             optimizer.state_dict()["param_groups"])
        one = torch.ones(1, requires_grad=True)
        for wrong, error, message in [
            (lambda: optim.SGD([], 0.1), ValueError, "got an empty parameter list"),
            (lambda: optim.SGD([one], -1), ValueError, "SGD: expected a number from 0 on as lr, got -1"),
            (lambda: optim.SGD([one], float("nan")), ValueError, "as lr, got nan"),
            (lambda: optim.SGD([one], 1, nesterov=True), ValueError, "got momentum 0"),
            (lambda: optim.Adam([one], eps=-1), ValueError, "Adam: expected a number from 0 on as eps"),
            (lambda: optim.AdamW([one], betas=(0.9, 1)), ValueError,
             "AdamW: expected two betas from 0 to below 1, got (0.9, 1)"),
            (lambda: optim.SGD([3], 0.1), TypeError, "an optimizer takes tensors, not int"),
            (lambda: optim.SGD([one * 2], 0.1), ValueError, "can't optimize a non-leaf Tensor"),
            (lambda: optim.SGD([one, one], 0.1), ValueError, "in more than one parameter group"),
            (lambda: optim.SGD([one], 0.1).load_state_dict({"state": {}, "param_groups": []}),
             ValueError, "expected groups of [1] parameters, got []"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(error, re.escape(message)):
                wrong()

    @needs_pytorch
    def test_steps_are_those_of_pytorch(self):
        import torch as reference

        for make in OPTIMIZERS:
            ours, optimizer = self.run_steps(torch, make)
            theirs, _ = self.run_steps(reference, make)
            with self.subTest(type(optimizer).__name__):
                self.assert_same(ours, theirs, 1e-5)
                with tempfile.NamedTemporaryFile(suffix=".pt") as file:
                    torch.save(optimizer.state_dict(), file.name)
                    other = make(reference.optim, [theirs])
                    other.load_state_dict(reference.load(file.name))


if __name__ == "__main__":
    unittest.main()
