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


class Largest(nn.Module):
    def forward(self, x):
        return nn.functional.adaptive_max_pool2d(x, 2)


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

    def test_other_batch_sizes_train_with_the_same_program(self):
        """Convolutions, maxima over windows and embeddings, whose gradients ask for sizes."""
        models = {
            "convolutions": (
                lambda: nn.Sequential(
                    nn.Conv2d(1, 4, 3),
                    nn.BatchNorm2d(4),
                    nn.ReLU(),
                    nn.MaxPool2d(2),
                    nn.Conv2d(4, 6, 3, padding=1),
                    nn.ReLU(),
                    Largest(),
                    nn.Flatten(),
                    nn.Linear(24, 3),
                ),
                lambda n: torch.randn(n, 1, 10, 10),
            ),
            "in a row": (
                lambda: nn.Sequential(
                    nn.Conv1d(2, 4, 3), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(16, 3)
                ),
                lambda n: torch.randn(n, 2, 10),
            ),
            "embeddings": (
                lambda: nn.Sequential(nn.Embedding(7, 5), nn.Flatten(), nn.Linear(20, 3)),
                lambda n: torch.randint(0, 7, (n, 4)),
            ),
        }
        for name, (make, make_x) in models.items():

            def train(device):
                torch.manual_seed(1)
                model = make().to(device)
                optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
                for n in (4, 7, 2, 9, 12):
                    loss = nn.functional.cross_entropy(
                        model(make_x(n).to(device)), (torch.arange(n) % 3).to(device)
                    )
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    lazy.mark_step()
                return [p.detach() for p in model.parameters()]

            with self.subTest(name):
                want = train("cpu")
                lazy.mark_step()
                lazy.reset_counters()
                for a, b in zip(train("lazy"), want):
                    self.assertTrue(torch.allclose(a.cpu(), b, rtol=1e-4, atol=1e-5), f"{a}\n{b}")
                counted = lazy.counters()
                self.assertEqual(counted["compiled"], 1, lazy.report())
                self.assertEqual(counted["causes"], {"mark_step": 5}, lazy.report())
                self.assertEqual(counted["immediate"], {}, lazy.report())

    def test_recurrent_layers_begin_on_the_inputs_device(self):
        for make in (nn.LSTM, nn.GRU, nn.RNN):
            torch.manual_seed(2)
            layer = make(3, 4)
            x = torch.randn(5, 2, 3)
            want = layer(x)[0].detach()
            layer.to("lazy")
            self.assertNear(layer(x.to("lazy"))[0].detach(), want)

    def test_the_default_device(self):
        torch.set_default_device("lazy")
        try:
            self.assertEqual(str(torch.get_default_device()), "lazy")
            for made in (torch.zeros(2), torch.tensor([0.0, 0.0]), torch.as_tensor([0.0, 0.0])):
                self.assertEqual(str(made.device), "lazy")
                self.assertSame(made, torch.zeros(2, device="cpu"))
            here = torch.ones(2, device="cpu")
            self.assertEqual(str(here.device), "cpu")
            self.assertEqual(str(torch.tensor(here).device), "cpu")
        finally:
            torch.set_default_device(None)
        self.assertEqual(str(torch.zeros(1).device), "cpu")
        there = torch.ones(2, device="lazy")
        self.assertEqual(str(torch.tensor(there, device="cpu").device), "cpu")
        with self.assertRaises(RuntimeError):
            torch.set_default_device("nowhere")

    def test_scripted_modules_move(self):
        model = nn.Linear(2, 3)
        scripted = wick.jit.script(model)
        x = torch.ones(4, 2)
        want = model(x).detach()
        self.assertIs(scripted.to("lazy"), scripted)
        self.assertEqual(str(scripted.weight.device), "lazy")
        self.assertNear(scripted(x.to("lazy")).detach(), want)
        with self.assertRaises(TypeError):
            scripted.to(None)

    def test_embeddings_gradients_name_a_wrong_index(self):
        grad = torch.ones(2, 3, device="lazy")
        at = torch.tensor([0, 9]).to("lazy")
        made = torch.embedding_dense_backward(grad, at, 4, -1, False)
        with self.assertRaisesRegex(RuntimeError, "index 9 is out of bounds"):
            made.cpu()
        with self.assertRaisesRegex(RuntimeError, "does not fit indices"):
            torch.embedding_dense_backward(grad, torch.tensor([0]).to("lazy"), 4, -1, False)

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

    def test_the_device_below(self):
        self.assertEqual(lazy.device(), torch.device("cpu"))
        lazy.set_device("cpu")
        for wrong in ("meta", "lazy"):
            with self.assertRaisesRegex(RuntimeError, "cannot be on " + wrong):
                lazy.set_device(wrong)
        with self.assertRaisesRegex(RuntimeError, "expected one of cpu, cuda"):
            lazy.set_device("disk")
        with self.assertRaises(TypeError):
            lazy.set_device(None)

    def train_a_cell(self, device, length):
        """The loss, states and new weights of a step of a recurrent cell that is called for each row."""
        torch.manual_seed(length)
        rows, first = torch.randn(length, 4, 5).to(device), torch.randn(4, 6).to(device)
        target = torch.randn(length, 4, 6).to(device)
        weights = [(torch.randn(n, 6) * 0.4).to(device).requires_grad_(True) for n in (5, 6, 1)]
        w, u, bias = weights
        state, states, written = first, [], torch.zeros(length, 6, device=device)
        for t in range(length):
            state = torch.tanh(rows[t] @ w + state @ u + bias)
            states.append(state)
            with torch.no_grad():
                written[t] = state[1]
        loss = ((torch.stack(states) - target) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in weights:
                p -= 0.5 * p.grad
        return [loss.detach(), state.detach(), written] + [p.detach() for p in weights]

    def test_a_recurrent_cell_is_a_loop(self):
        lengths = (16, 29, 21, 40)
        rolled = []
        for length in lengths:
            rolled.append(self.train_a_cell("lazy", length))
            lazy.mark_step()
        counters = lazy.counters()
        self.assertEqual(counters["compiled"], 1, lazy.report())
        self.assertGreaterEqual(counters["rolled"], 2 * len(lengths))
        self.assertIn("ran as loops", lazy.report())
        lazy.set_rolling(False)
        try:
            for length, got in zip(lengths, rolled):
                plain = self.train_a_cell("lazy", length)
                lazy.mark_step()
                for a, b, want in zip(got, plain, self.train_a_cell("cpu", length)):
                    self.assertSame(a, b.cpu())
                    self.assertNear(a, want)
            self.assertEqual(lazy.counters()["rolled"], counters["rolled"])
        finally:
            lazy.set_rolling(True)
        with self.assertRaises(TypeError):
            lazy.set_rolling(1)

    def test_gradients_that_make_tensors_make_them_here(self):
        """Zeros, identities and positions of formulas are where the gradient is."""
        F = nn.functional
        x = numbers(3, 4, seed=3).double()

        def here(t, like):
            return torch.tensor(t).to(like.device)

        def written(y, where, what):
            y = y.clone()
            y[where] = what
            return y

        column = [[0, 0, 0, 0]]
        for name, f in {
            "subscripts of a list": lambda x: x[[1, 0]],
            "subscripts of a tensor": lambda x: x[here([1, 0], x)],
            "mask": lambda x: x[here([True, False, True], x)],
            "max": lambda x: x.max(1)[0],
            "gather": lambda x: x.gather(0, here(column, x)),
            "index_select": lambda x: x.index_select(0, here([1, 0], x)),
            "take": lambda x: x.take(here([1, 0], x)),
            "put": lambda x: x.put(here([1, 0], x), x[0, :2]),
            "unfold": lambda x: x.unfold(0, 2, 1),
            "sort": lambda x: x.sort(0)[0],
            "cummax": lambda x: x.cummax(0)[0],
            "masked_select": lambda x: x.masked_select(x > 0),
            "quantile": lambda x: x.quantile(0.3, 0),
            "trace": lambda x: x.trace(),
            "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
            "combinations": lambda x: torch.combinations(x[0]),
            "reflect": lambda x: F.pad(x[None], (1, 1), mode="reflect"),
            "index_put": lambda x: x.index_put((here([1, 0], x),), x[:2] * 2),
            "write": lambda x: written(x, [0, 1], x[1:]),
            "write to a part": lambda x: written(x * 2, (slice(1, 3), 0), 7),
            "write to a part of a maximum": lambda x: written(x.max(1, keepdim=True)[0], 1, x[0, 0]),
            "select_scatter": lambda x: torch.select_scatter(x, x[0] * 2, 0, 1),
            "embedding_bag": lambda x: F.embedding_bag(here([1, 0], x), x, here([0], x)),
            "margin": lambda x: F.multi_margin_loss(x[:2], here([1, 0], x)),
            "affine_grid": lambda x: F.affine_grid(x[:2, :3][None], [1, 1, 2, 2],
                                                   align_corners=False),
            "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None],
                                                                  is_causal=True),
            "mvlgamma": lambda x: x.abs().add(3).mvlgamma(2),
            "vander": lambda x: torch.linalg.vander(x[0]),
            "power": lambda x: (x @ x.t()).matrix_power(3),
            "irfft": lambda x: torch.fft.irfft(x),
            "stft": lambda x: torch.stft(x.flatten(), 4, return_complex=True).abs(),
        }.items():
            gradients = []
            for device in ("cpu", "lazy"):
                leaf = x.to(device).detach().requires_grad_()
                f(leaf).square().sum().backward()
                gradients.append(leaf.grad)
            with self.subTest(name):
                self.assertNear(gradients[1], gradients[0])
                self.assertEqual(gradients[1].device.type, "lazy")

    def test_the_cache_needs_room(self):
        for wrong, error, message in [
            (lambda: lazy.set_cache_size(0), ValueError, "expected at least one graph"),
            (lambda: lazy.set_cache_size("many"), TypeError, "expected an int, got str"),
            (lambda: lazy.set_rolling(1), TypeError, "set_rolling: expected a bool, got int"),
            (lambda: lazy.set_device(3), TypeError, "expected a device or its name, got int"),
            (lambda: lazy.set_device("meta"), RuntimeError, "cannot be on meta; expected cpu or cuda"),
            (lambda: lazy.set_device("gpu"), RuntimeError, "expected one of cpu, cuda, lazy, meta"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(error, message):
                wrong()
        lazy.set_cache_size(512)


if __name__ == "__main__":
    unittest.main()
