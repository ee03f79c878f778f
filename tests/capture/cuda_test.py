"""Tensors on a CUDA device in graphs: results, devices, gradients and errors of plain execution.

Without a GPU the extension module is one with a simulated device, whose memory is the CPU's.
"""

import importlib.util
import subprocess
import sys
import unittest

SIMULATED = "tests/capture/simulated/_C.so"


def load(name):
    spec = importlib.util.spec_from_file_location(name, SIMULATED)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def prepare():
    """Puts the simulated device in place where there is no other one."""
    question = "import sys, wick; sys.exit(not wick.torch.cuda.is_available())"
    if subprocess.run([sys.executable, "-c", question]).returncode != 0:
        load("wick._C")
        load("_simulated")


prepare()

import wick
import wick.compiler
from wick import torch
from wick.torch import nn
from worlds import tensors_in


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 2)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        x = self.norm(torch.relu(self.first(x)))
        return self.last(x) * self.scale


class OnCuda(unittest.TestCase):
    def setUp(self):
        wick.compiler.reset()
        torch.manual_seed(1)
        self.x = torch.tensor([[1.0, -2.0, 3.0, 4.0], [0.5, 0.25, -1.0, 2.0]], device="cuda")

    def check(self, function, *given, breaks=0):
        """Compares with the plain function, twice, and counts breaks."""
        given = given or (self.x,)
        for backend in ("wick", "eager"):
            wick.compiler.reset()
            compiled = wick.compile(function, backend=backend)
            for _ in range(2):
                self.same(self.outcome(compiled, given), self.outcome(function, given))
        wick.compiler.reset()
        explained = wick.compiler.explain(function)(*given)
        self.assertEqual(explained.graph_break_count, breaks, str(explained))

    def outcome(self, function, given):
        given = [each.detach().clone().requires_grad_(each.requires_grad) for each in given]
        torch.manual_seed(3)
        try:
            result = function(*given)
        except (RuntimeError, IndexError) as error:
            return type(error)
        wanted = [each for each in tensors_in(result) if each.requires_grad]
        if wanted:
            sum(each.double().sum().cpu() for each in wanted).backward()
        return result, [each.grad for each in given if hasattr(each, "grad")]

    def same(self, got, expected):
        self.assertIs(type(got), type(expected))
        if isinstance(got, (tuple, list)):
            self.assertEqual(len(got), len(expected))
            for a, b in zip(got, expected):
                self.same(a, b)
        elif hasattr(got, "shape"):
            for name in ("shape", "dtype", "device", "requires_grad"):
                self.assertEqual(getattr(got, name), getattr(expected, name), name)
            self.assertEqual(got.stride(), expected.stride())
            difference = (got.detach().cpu().double() - expected.detach().cpu().double()).abs()
            self.assertLessEqual(difference.max().item() if difference.numel() else 0, 1e-5)
        else:
            self.assertEqual(got, expected)

    def test_arithmetic(self):
        self.check(lambda x: (x * 2 + 1).relu().sum(1))
        self.check(lambda x: torch.softmax(x @ x.t(), 1))

    def test_devices_are_told(self):
        def f(x):
            y = x + 1
            told = (x.is_cuda, x.is_cpu, y.is_cuda, x.device.type, x.device.index, y.device == x.device, y.get_device())
            host = y.cpu()
            return y, told, (host.device.type, host.is_cuda, host.get_device(), host.device == y.device)

        self.check(f)

    def test_factories(self):
        def f(x):
            rows = torch.arange(x.shape[0], device=x.device, dtype=torch.float32)
            named = torch.zeros(4, device="cuda"), torch.ones(2, 1, device="cuda:0")
            named += (torch.full((2, 4), 0.5, device=torch.device("cuda")),)
            like = torch.zeros_like(x), x.new_ones(4), torch.full_like(x, 3), x.new_tensor([1.0, 2.0, 3.0, 4.0])
            return rows[:, None] + x + sum(named) + sum(like), torch.zeros(2), torch.eye(2, device=x.device)

        self.check(f)

    def test_default_device(self):
        def f(x):
            return torch.zeros(4) + torch.arange(4), torch.zeros(2).is_cuda, x.cpu()

        compiled = wick.compile(f)
        try:
            for device in ("cuda", None, "cuda"):
                torch.set_default_device(device)
                self.same(compiled(self.x), f(self.x))
        finally:
            torch.set_default_device(None)

    def test_modes(self):
        for mode in ("reduce-overhead", "max-autotune"):
            wick.compiler.reset()
            compiled = wick.compile(lambda x: torch.relu(x @ x.t()) + 1, mode=mode)
            for _ in range(5):
                self.same(compiled(self.x), torch.relu(self.x @ self.x.t()) + 1)

    def test_constants(self):
        def f(x):
            weights = torch.tensor([1.0, 2.0, 3.0, 4.0], device=x.device)
            return x * weights, weights, torch.tensor(2.0)

        self.check(f)

    def test_numbers_on_the_cpu(self):
        two = torch.tensor(2.0)
        self.check(lambda x: x * torch.tensor(2.0) + 1)
        self.check(lambda x, n: (n * x, x / n, torch.where(x > n, x, n)), self.x, two)

    def test_moves(self):
        def f(x):
            host = x.cpu()
            back = (host * 2).to("cuda")
            others = host.to(x), host.cuda(), x.to("cpu", torch.float64), x.to(torch.float16)
            return host + 1, back, back.to(x.device) is back, others

        self.check(f)

    def test_both_devices_as_inputs(self):
        def f(x, y):
            return x + y.to(x.device), y + x.cpu(), x.to(y)

        self.check(f, self.x, torch.ones(2, 4))

    def test_indices_on_the_cpu(self):
        def f(x, rows):
            y = x.clone()
            y[rows] = 0.0
            return x[rows], x[rows, rows], y

        self.check(f, self.x, torch.tensor([1, 0]))

    def test_two_devices_in_one_operator(self):
        for f in (lambda x, y: x + y, lambda x, y: torch.cat([x, y]), lambda x, y: x @ y.t()):
            wick.compiler.reset()
            with self.assertRaisesRegex(RuntimeError, "same device") as plain:
                f(self.x, torch.ones(2, 4))
            with self.assertRaises(RuntimeError) as compiled:
                wick.compile(f)(self.x, torch.ones(2, 4))
            self.assertEqual(str(compiled.exception), str(plain.exception))

    def test_gradients(self):
        x = self.x.clone().requires_grad_()
        self.check(lambda x: ((x * x).sum(1), x.cpu() * 2), x)

    def test_gradients_of_moves(self):
        def there_and_back(x):
            return x.cpu() * 2, x.cpu().cuda() * 3, x.to("cpu", torch.float64).to(x)

        host = torch.ones(2, 4, requires_grad=True)
        self.check(there_and_back, self.x.clone().requires_grad_())
        self.check(lambda h: (h.cuda() @ h.to("cuda").t(), h.sum().cuda()), host)

        def copied(x, h):
            y = x * 1
            y.copy_(h)
            return y, (x.cpu() + h).sum()

        self.check(copied, self.x.clone().requires_grad_(), host)

    def test_module(self):
        for training in (True, False):
            net = Net().to("cuda").train(training)
            compiled = wick.compile(net, fullgraph=True)
            for _ in range(2):
                net.zero_grad()
                expected = net(self.x)
                expected.sum().backward()
                gradients = [p.grad.clone() for p in net.parameters()]
                net.zero_grad()
                got = compiled(self.x)
                got.sum().backward()
                self.same([got, [p.grad for p in net.parameters()]], [expected, gradients])

    def test_module_that_moves(self):
        net = Net()
        compiled = wick.compile(net, fullgraph=True)
        for device in ("cpu", "cuda", "cpu"):
            net.to(device)
            self.same(compiled(self.x.to(device)), net(self.x.to(device)))

    def test_devices_are_guarded(self):
        def f(x):
            return x + torch.arange(4, device=x.device), x.is_cuda

        compiled = wick.compile(f)
        for _ in range(2):
            for device in ("cuda", "cpu"):
                self.same(compiled(self.x.to(device)), f(self.x.to(device)))
        self.assertEqual(wick.compiler.explain(f)(self.x).graph_count, 1)

    def test_guards_name_the_device(self):
        self.assertIn("on cuda:0", str(wick.compiler.explain(lambda x: x + 1)(self.x).guards))

    def test_random_numbers(self):
        def f(x):
            noise = torch.rand_like(x) + torch.randn(2, 4, device=x.device)
            return x + noise, nn.functional.dropout(x, 0.5), torch.randperm(5, device=x.device)

        self.check(f)

    def test_writes(self):
        def f(x):
            x.mul_(2)
            x[0] += 1
            x[:, 1].copy_(torch.zeros(2))
            return x.sum()

        for backend in ("wick", "eager"):
            wick.compiler.reset()
            compiled = wick.compile(f, backend=backend)
            for _ in range(2):
                a, b = self.x.clone(), self.x.clone()
                self.same((compiled(a), a), (f(b), b))

    def test_branches_and_loops(self):
        def f(x):
            y = x * 2 if x.sum() > 0 else x - 1
            while y.norm() > 3:
                y = y / 2
            return y

        self.check(f)
        self.check(f, -self.x)

    def test_numbers_that_elements_decide(self):
        def f(x):
            kept = x[x > 0]
            rows = (x > 0).nonzero()
            return kept * 2, kept.shape[0], rows, x.sum().item(), bool((x > 9).any()), x[x.sum(1).argmax()]

        self.check(f)

    def test_open_sizes(self):
        def f(x):
            return torch.cat([x, torch.zeros(x.shape[0], 1, device=x.device)], 1), x.shape[0] * 2

        compiled = wick.compile(f)
        before = wick.compiler.counters.graph_count
        for rows in (2, 3, 5, 7):
            x = torch.ones(rows, 4, device="cuda")
            self.same(compiled(x), f(x))
        self.assertEqual(wick.compiler.counters.graph_count - before, 2)

    def test_operators_without_rules(self):
        def f(x):
            products = torch.einsum("ij,kj->ik", x, x)
            return products, x.sort(1), x.topk(2), x.cumsum(0), torch.linalg.norm(x), x.median(1), x.unique()

        self.check(f)

    def test_autocast(self):
        def f(x):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                y = x @ x.t()
                return y, (x.cpu() @ x.cpu().t()).dtype, y.exp().dtype

        self.check(f)

    def test_layers(self):
        torch.manual_seed(2)
        image = torch.randn(2, 3, 8, 8, device="cuda")
        layers = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
        net = nn.Sequential(*layers).to("cuda")
        for training in (True, False):
            net.train(training)
            self.check(lambda x: net(x), image)


if __name__ == "__main__":
    unittest.main()
