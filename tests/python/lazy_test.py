"""wick.lazy: the same programs eagerly and on the device "lazy" have the same bits, and a step that was
recorded before compiles nothing."""

import unittest

import testing  # noqa: F401  (finds the package)
import wick
from wick import lazy, nn, optim, torch


def lines():
    """The lines of this file, with their numbers."""
    with open(__file__) as file:
        return list(enumerate(file.read().splitlines(), 1))


def numbers(*sizes, seed):
    torch.manual_seed(seed)
    return torch.randn(*sizes)


class Lazy(unittest.TestCase):
    def setUp(self):
        lazy.mark_step()
        lazy.reset_counters()

    def assertSame(self, got, want):
        self.assertEqual(got.dtype, want.dtype)
        self.assertEqual(got.shape, want.shape)
        self.assertTrue(torch.equal(got.cpu(), want), f"{got}\n{want}")

    def assertNear(self, got, want):
        """Equal but for the rounding of sums, which kernels add in another order than operators."""
        self.assertTrue(torch.allclose(got.cpu(), want, rtol=1e-5, atol=2e-6), f"{got}\n{want}")

    def test_nothing_runs_before_it_is_looked_at(self):
        x = numbers(3, 4, seed=1)
        y = (x.to("lazy") * 2 + 1).relu()
        self.assertEqual(str(y.device), "lazy")
        self.assertEqual(lazy.counters()["evaluations"], 0)
        self.assertIn("aten::relu", lazy.dump())
        self.assertIn("lazy_test.py", lazy.dump())
        self.assertSame(y, (x * 2 + 1).relu())
        self.assertEqual(lazy.counters()["evaluations"], 1)
        self.assertEqual(lazy.dump(), "")

    def test_what_looks_at_values(self):
        x = torch.ones(2, device="lazy") * 3
        self.assertEqual((x + 1).tolist(), [4.0, 4.0])
        self.assertEqual((x + 2).sum().item(), 10.0)
        self.assertEqual(float((x + 3)[0]), 6.0)
        self.assertIn("7.", repr(x + 4))
        if (x > 2).all():
            self.assertTrue(bool((x == 3).all()))
        self.assertEqual((x + 5).cpu().numpy().tolist(), [8.0, 8.0])
        with self.assertRaises(TypeError):
            (x + 6).numpy()

    def test_subscripts_and_writes(self):
        def program(x):
            x = x * 2
            x[0] += 1
            x[:, 1] = 7
            x[1, 2:] = x[0, :2]
            y = x.t()
            y[3].mul_(3)
            x[x > 6] = 0
            return x, y, x[[1, 0]], x[..., -1]

        x = numbers(3, 4, seed=2)
        for got, want in zip(program(x.to("lazy")), program(x)):
            self.assertSame(got, want)

    def test_errors_name_the_line(self):
        x = torch.ones(3, device="lazy")
        with self.assertRaisesRegex(RuntimeError, "must match the size"):
            x + torch.ones(4, device="lazy")
        y = torch.index_select(x, 0, torch.tensor([5]).to("lazy"))  # this line
        with self.assertRaisesRegex(IndexError, "lazy_test.py"):
            lazy.mark_step()
        with self.assertRaises(IndexError):
            y.cpu()
        self.assertSame(x + 1, torch.full((3,), 2.0))

    def train(self, device, make_optimizer, steps=6, freeze_behind=None):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
        for p in model.parameters():
            p.data = p.data.to(device)
        optimizer = make_optimizer(model.parameters())
        compiled = []
        for step in range(steps):
            x = numbers(8 + step, 6, seed=step).to(device)
            target = (torch.arange(8 + step) % 3).to(device)
            loss = nn.functional.cross_entropy(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            lazy.mark_step()
            if step == freeze_behind:
                lazy.freeze_step()
            compiled.append(lazy.counters()["compiled"])
        return [p.detach() for p in model.parameters()], compiled

    def test_a_training_compiles_its_first_steps(self):
        for make in (
            lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
            lambda p: optim.Adam(p, lr=0.01),
            lambda p: optim.AdamW(p, lr=0.01),
            lambda p: optim.Adam(p, lr=0.01, weight_decay=0.1, amsgrad=True),
            lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
            lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
            lambda p: optim.Adagrad(p, lr=0.01),
        ):
            lazy.reset_counters()
            want, _ = self.train("cpu", make)
            got, compiled = self.train("lazy", make)
            for a, b in zip(got, want):
                self.assertNear(a, b)
            # The first step makes the optimizer's state, and is the same program all the same.
            self.assertEqual(compiled, [1] * len(compiled), lazy.report())
            self.assertEqual(lazy.counters()["found"], len(compiled) - 1)
            # Each step is one graph.
            self.assertEqual(lazy.counters()["causes"], {"mark_step": len(compiled)})

    def test_frozen_steps(self):
        for make in (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.Adam(p, lr=0.01)):
            lazy.reset_counters()
            want, _ = self.train("cpu", make)
            got, _ = self.train("lazy", make, freeze_behind=1)
            lazy.thaw_step()
            for a, b in zip(got, want):
                self.assertNear(a, b)
            self.assertEqual(lazy.counters()["followed"], 3)
            # Another training is another computation.
            with self.assertRaisesRegex(RuntimeError, "freeze_step: .* not the same computation"):
                lazy.freeze_step()
                self.train("lazy", make)
                self.train("lazy", lambda p: optim.RMSprop(p, lr=0.1))
            lazy.mark_step()

    def test_the_report_names_lines(self):
        x = torch.ones(3, device="lazy") * 2
        self.assertEqual(torch.nonzero(x).shape, (3, 1))  # asks
        float(x.sum())  # looks
        told = lazy.report().splitlines()
        at = {
            word: str(n)
            for n, line in lines()
            for word in ("asks", "looks")
            if line.rstrip().endswith("# " + word)
        }
        self.assertTrue(
            any("aten::nonzero" in l and f"lazy_test.py:{at['asks']}" in l for l in told[1:]), told
        )
        self.assertTrue(any(f"lazy_test.py:{at['looks']}" in l for l in told[1:]), told)

    def test_places_in_scripts(self):
        @wick.jit.script
        def twice(x):
            y = x * 2  # in the script
            return y.relu()

        x = torch.ones(3, device="lazy", requires_grad=True)
        y = twice(x)
        line = next(n for n, l in lines() if l.endswith("# in the script"))
        records = [l for l in lazy.dump().splitlines() if "aten::mul" in l]
        self.assertEqual(len(records), 1)
        self.assertIn(f"lazy_test.py:{line}", records[0])
        y.sum().backward()  # of the walk
        line = next(n for n, l in lines() if l.endswith("# of the walk"))
        walked = lazy.dump().split("aten::sum")[1]
        self.assertIn(f"lazy_test.py:{line}", walked)
        self.assertNotIn("<gradient of", walked)
        self.assertIn("digraph", lazy.dump(dot=True))
        self.assertSame(x.grad, torch.full((3,), 2.0))

    def test_the_cache_needs_room(self):
        with self.assertRaises(ValueError):
            lazy.set_cache_size(0)
        with self.assertRaises(TypeError):
            lazy.set_cache_size("many")
        lazy.set_cache_size(512)


if __name__ == "__main__":
    unittest.main()
