"""torch.autocast in captured code: one graph with the casts, and the results, dtypes and gradients of plain calls."""

import unittest
import warnings

import wick
import wick.compiler
from worlds import in_both, tensors_in

# With a and b of 4 x 5, p and q like them between 0 and 1, l and m like a and b in bfloat16, k four classes, s four signs, i a
# batch of 2 x 4 x 6 x 6, w a weight of 3 x 5, v one of its rows, and j a batch of 2 x 3 x 4 x 4 x 4.
CALLS = """
F.linear(a, w) @ w
F.linear(a, w, v[:3])
F.linear(l, w, v[:3]) + 1
a @ b.t() + l @ m.t()
a.matmul(w.t()).float() + t.mm(a, w.t())
t.bmm(i[:, 0], i[:, 1]) + t.baddbmm(i[:, 2], i[:, 0], i[:, 1])
t.addmm(a[:, :4], a, b.t()) * 2
t.addbmm(i[0, 0], i[:, 0], i[:, 1])
t.mv(a, v) + t.dot(v, v) + t.addmv(a[:, 0], a, v)
t.inner(a, b) + t.tensordot(a, b, dims=([1], [1]))
t.inner(a[0, 0], b)
F.conv2d(i, i[:, :, :3, :3], padding=1)
F.conv2d(i, i[:, :, :3, :3], v[:2], padding="same")
F.conv1d(i[:, 0], i[0, :, :, :3].transpose(0, 1).contiguous())
F.conv3d(j, j[:1, :, :2, :2, :2])
F.conv_transpose2d(i, i[:1].transpose(0, 1)[:, :, :2, :2], stride=2)
F.softmax(a @ b.t(), 1) + F.log_softmax(a @ b.t(), 1)
F.softmax(a, 1, dtype=t.float32) + F.softmax(l, 1)
F.layer_norm(l.float(), (5,)) + F.layer_norm(a, (5,), v, v)
F.group_norm(i, 2) + F.instance_norm(i)
F.batch_norm(i, t.zeros(4), t.ones(4), training=True)
F.batch_norm(F.conv2d(i, i[:, :, :1, :1].repeat(2, 1, 1, 1)), t.zeros(4), t.ones(4), training=True)
F.mse_loss(l, b) + F.mse_loss(a, b)
F.mse_loss(a @ b.t(), b @ b.t(), reduction="none")
F.l1_loss(l, m) + F.smooth_l1_loss(l, m) + F.huber_loss(l, m)
F.cross_entropy(l, k)
F.cross_entropy(F.linear(a, w.t().contiguous().t().repeat(2, 1)[:5]), k, label_smoothing=0.1)
F.nll_loss(F.log_softmax(a @ b.t(), 1), k % 4)
F.binary_cross_entropy_with_logits(l, q, pos_weight=t.ones(5))
F.kl_div(F.log_softmax(l.float(), 1), F.softmax(b, 1), reduction="batchmean")
F.poisson_nll_loss(l, q)
F.hinge_embedding_loss(l, t.sign(b))
F.margin_ranking_loss(l[:, 0], m[:, 0], s)
F.soft_margin_loss(l, t.sign(q - 0.5))
F.cosine_embedding_loss(l, m, s)
F.triplet_margin_loss(l, m, a + b)
F.cosine_similarity(a, b) + F.pairwise_distance(a, b)
t.cat([a, b]) + t.cat([l, m])
t.cat([a, l]) + t.stack([a, m]).view(8, 5)
t.cat([a @ b.t(), a[:, :4]])
t.stack([a @ b.t(), a[:, :4]]) + t.hstack([l, m])[:, :4]
t.cat([a, k[:, None]], 1)
a + l
a * l - m / b
a @ b.t() + a[:, :4]
t.where(a > 0, a, l) + t.maximum(a, l)
t.addcmul(a, b, l.float()) + t.lerp(a, b, 0.5)
l.pow(2) + l.exp() + l.abs()
a.exp().log1p() + q.bfloat16().float().sqrt()
t.norm(a) + a.norm(2, dim=1)
t.norm(a @ b.t()) + (a @ b.t()).norm(2, dim=1)
t.linalg.norm(a) + t.linalg.norm(v)
a.cumsum(0) + b.cumprod(1)
(a @ b.t()).cumsum(0)
l.sum() + l.mean() + a.sum(1)
l.prod() + l.prod(1)
a.trace() + l.trace()
F.interpolate(i, scale_factor=2, mode="bilinear")
F.interpolate(i, size=(12, 12))
F.pad(a, (1, 1)) * F.pad(b[None], (1, 1), mode="reflect")
F.pad(l[None], (1, 1), mode="reflect") + F.pad(m[None], (1, 1), mode="replicate")
F.grid_sample(i, i[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False)
F.max_pool2d(F.conv2d(i, i[:, :, :1, :1]), 2) + F.avg_pool2d(F.conv2d(i, i[:, :, :1, :1]), 2)
F.avg_pool3d(j.bfloat16(), 2) + F.max_pool3d(j.bfloat16(), 2)
F.adaptive_avg_pool2d(F.conv2d(i, i[:, :, :1, :1]), 2)
F.relu(F.linear(a, w)) + F.gelu(F.linear(a, w)) + F.silu(F.linear(a, w))
F.softplus(l.float()) + F.elu(a)
F.embedding(k, a.t().contiguous())
F.linear(F.embedding(k, a.t().contiguous()), a[:3, :4])
F.dropout(a, 0.0) + F.dropout(F.linear(a, b[:, :5].repeat(2, 1)[:5]), 0.5)
t.cdist(a, b) + t.cdist(l, m)
t.fft.fft(l).abs() + t.fft.rfft(a, 8).abs().mean()
t.linalg.inv(a[:, :4] @ a[:, :4].t() + 8 * t.eye(4))
t.linalg.cholesky(a @ a.t() + 8 * t.eye(4))
t.quantile(l, 0.5) + t.quantile(a, 0.5)
t.zeros(4, 5, dtype=t.bfloat16).index_copy(0, k % 4, a[[0, 0, 1, 1]])
a.double() @ b.double().t()
(a > 0).float() @ w.t()
"""


class Autocast:
    def setUp(self):
        wick.compiler.reset()
        t = self.torch
        t.manual_seed(2)
        a, b = t.randn(4, 5), t.randn(4, 5)
        self.given = {
            "t": t, "F": t.nn.functional, "a": a, "b": b, "p": a.sigmoid(), "q": b.sigmoid(), "k": t.tensor([0, 3, 1, 4]),
            "s": t.tensor([1.0, -1.0, 1.0, -1.0]), "i": t.randn(2, 4, 6, 6), "l": a.bfloat16(), "m": b.bfloat16(),
            "w": t.randn(3, 5), "v": t.randn(5), "j": t.randn(2, 3, 4, 4, 4),
        }

    def on(self, **settings):
        return self.torch.autocast("cpu", **settings)

    # ---- comparisons ----

    def outcome(self, function, *given):
        """The tensors of the result, or the class of an error."""
        self.torch.manual_seed(5)
        try:
            return list(tensors_in(function(*given)))
        except (RuntimeError, TypeError) as error:
            return type(error)

    def same(self, got, expected, within=2e-2):
        if isinstance(expected, type):
            self.assertIs(got, expected)
            return
        self.assertNotIsInstance(got, type)
        self.assertEqual([x.dtype for x in got], [y.dtype for y in expected])
        self.assertEqual([x.requires_grad for x in got], [y.requires_grad for y in expected])
        for x, y in zip(got, expected):
            self.assertEqual((x.shape, self.strides(x)), (y.shape, self.strides(y)))
            self.close(x, y, within)

    def strides(self, x):
        # PyTorch's for one element depend on the processor, which may have products of bfloat16.
        return [stride for stride, size in zip(x.stride(), x.shape) if size != 1]

    def close(self, x, y, within):
        if y.is_complex():
            x, y = self.torch.view_as_real(x), self.torch.view_as_real(y)
        if y.numel():
            scale = max(1.0, y.double().abs().max().item())
            self.assertLess((x.double() - y.double()).abs().max().item(), within * scale)

    def one_graph(self, function, *given):
        explained = wick.compiler.explain(function)(*given)
        self.assertEqual((explained.graph_count, explained.break_reasons), (1, []))
        wick.compiler.reset()
        return str(explained.graphs[0])

    def check(self, function, *given, graphs=1):
        """Compares results and numbers of graphs, with both backends."""
        expected = self.outcome(function, *given)
        for backend in ("wick", "eager"):
            wick.compiler.reset()
            before = wick.compiler.counters.graph_count
            compiled = wick.compile(function, backend=backend)
            for _ in range(2):
                self.same(self.outcome(compiled, *given), expected)
            self.assertEqual(wick.compiler.counters.graph_count - before, graphs)

    def function_of(self, line):
        expression = eval("lambda: " + line, dict(self.given))  # noqa: S307

        def within():
            with self.on():
                return expression()

        return within

    # ---- operators ----

    def test_operators(self):
        for line in CALLS.strip().splitlines():
            with self.subTest(call=line):
                plain = self.function_of(line)
                expected = self.outcome(plain)
                wick.compiler.reset()
                compiled = wick.compile(plain)
                for _ in range(2):
                    self.same(self.outcome(compiled), expected)
                if not isinstance(expected, type):
                    wick.compiler.reset()
                    self.one_graph(plain)

    def gradients_of(self, function):
        leaves = [self.given[name] for name in "abiwvj"]
        for leaf in leaves:
            leaf.grad = None
        results = self.outcome(function)
        if isinstance(results, type):
            return results
        results = [r for r in results if r.requires_grad]
        if not results:
            return []
        try:
            sum((r.float().abs() * r.float().abs()).sum() for r in results).backward()
        except RuntimeError as error:
            return type(error)
        return [leaf.grad for leaf in leaves]

    def test_gradients(self):
        for name in "abiwvj":
            self.given[name].requires_grad_()
        for line in CALLS.strip().splitlines():
            with self.subTest(call=line):
                plain = self.function_of(line)
                expected = self.gradients_of(plain)
                wick.compiler.reset()
                got = self.gradients_of(wick.compile(plain))
                if isinstance(expected, type):
                    self.assertIs(got, expected)
                    continue
                self.assertEqual([g is None for g in got], [g is None for g in expected])
                for x, y in zip(got, expected):
                    if y is not None:
                        self.assertEqual((x.shape, x.dtype), (y.shape, y.dtype))
                        self.close(x, y, 5e-2)

    # ---- scopes ----

    def test_scopes_within_scopes(self):
        t, w = self.torch, self.given["w"]

        def f(x):
            with t.autocast("cpu", dtype=t.bfloat16):
                y = x @ w.t()
                with t.autocast("cpu", enabled=False):
                    z = x @ w.t()
                with t.autocast("cpu", dtype=t.bfloat16):
                    u = x @ w.t()
                v = y @ w
            return y, z, u, v, x @ w.t()

        self.check(f, self.given["a"])

    def test_all_names(self):
        t, w = self.torch, self.given["w"]

        def f(x):
            with t.cpu.amp.autocast():
                y = x @ w.t()
            with t.amp.autocast("cpu"):
                z = x @ w.t()
            with t.cpu.amp.autocast(enabled=False):
                u = x @ w.t()
            return y, z, u

        self.check(f, self.given["a"])

    def test_decorator(self):
        t, w = self.torch, self.given["w"]

        @t.autocast("cpu")
        def f(x):
            return x @ w.t()

        def g(x):
            return f(x), x @ w.t()

        self.check(g, self.given["a"])
        self.check(f, self.given["a"])

    def test_object_from_outside(self):
        scope, w = self.on(), self.given["w"]

        def f(x):
            with scope:
                y = x @ w.t()
            return y, x @ w.t()

        self.check(f, self.given["a"])

    def test_questions(self):
        t = self.torch

        def f(x):
            before = t.is_autocast_cpu_enabled(), t.get_autocast_cpu_dtype(), t.is_autocast_enabled()
            with t.autocast("cpu"):
                within = t.is_autocast_cpu_enabled(), t.get_autocast_cpu_dtype(), t.is_autocast_cache_enabled()
                y = x + 1
            return before, within, t.is_autocast_cpu_enabled(), y

        compiled = wick.compile(f)
        for enabled in (False, True, False):
            with self.on(enabled=enabled):
                got, expected = compiled(self.given["a"]), f(self.given["a"])
            self.assertEqual(got[:3], expected[:3])
        self.one_graph(f, self.given["a"])

    def test_state_at_the_call_is_guarded(self):
        t, w = self.torch, self.given["w"]

        def f(x):
            return x @ w.t()

        before = wick.compiler.counters.graph_count
        compiled = wick.compile(f)
        for enabled in (False, True, False, True):
            with self.on(enabled=enabled):
                self.same(self.outcome(compiled, self.given["a"]), self.outcome(f, self.given["a"]))
        self.assertEqual(wick.compiler.counters.graph_count - before, 2)
        with self.on():
            got = wick.compile(f, backend="eager")(self.given["a"])
            self.assertIs(got.dtype, t.bfloat16)

    def test_nothing_is_asked_without_need(self):
        t, w = self.torch, self.given["w"]

        def f(x):
            return x @ w.t()

        compiled = wick.compile(f)
        before = wick.compiler.counters.graph_count
        t.set_autocast_cpu_dtype(t.bfloat16)
        compiled(self.given["a"])
        with self.on(enabled=False):
            compiled(self.given["a"])
        self.assertEqual(wick.compiler.counters.graph_count - before, 1)

    def test_state_that_is_left(self):
        t, w = self.torch, self.given["w"]

        def f(x):
            t.set_autocast_cpu_enabled(True)
            return x @ w.t()

        for backend in ("wick", "eager"):
            wick.compiler.reset()
            try:
                got = wick.compile(f, backend=backend)(self.given["a"])
                self.assertTrue(t.is_autocast_cpu_enabled())
            finally:
                t.set_autocast_cpu_enabled(False)
            self.assertIs(got.dtype, t.bfloat16)

    def test_breaks_within_a_scope(self):
        t, w, seen = self.torch, self.given["w"], []

        def f(x):
            with t.autocast("cpu"):
                y = x @ w.t()
                seen.append((t.is_autocast_cpu_enabled(), y.sum().item() == 0))
                z = x @ w.t()
            return y, z, x @ w.t()

        self.same(self.outcome(wick.compile(f), self.given["a"]), self.outcome(f, self.given["a"]))
        self.assertEqual(seen[0], seen[1])
        self.assertFalse(t.is_autocast_cpu_enabled())

    def test_exceptions_leave_the_scope(self):
        t, w = self.torch, self.given["w"]

        def f(x, fails):
            try:
                with t.autocast("cpu"):
                    y = x @ w.t()
                    if fails:
                        raise ValueError("within")
            except ValueError:
                return x @ w.t(), y
            return y, x

        self.check(f, self.given["a"], True)
        self.check(f, self.given["a"], False)

        def g(x):
            with t.autocast("cpu"):
                raise ValueError((x @ w.t()).dtype)

        with self.assertRaisesRegex(ValueError, "bfloat16"):
            wick.compile(g)(self.given["a"])
        self.assertFalse(t.is_autocast_cpu_enabled())

    def test_branches(self):
        t, w = self.torch, self.given["w"]

        def f(x):
            with t.autocast("cpu"):
                if x.sum() > 0:
                    y = x @ w.t()
                else:
                    y = (x + 1) @ w.t()
                return y @ w, x @ w.t()

        self.check(f, self.given["a"])
        self.check(f, -self.given["a"])

        def g(x):
            if x.sum() > 0:
                with t.autocast("cpu"):
                    y = (x @ w.t()).float()
            else:
                y = x @ w.t()
            return y

        self.check(g, self.given["a"])
        self.check(g, -self.given["a"])

    def test_without_gradients(self):
        t, w = self.torch, self.given["w"].clone().requires_grad_()

        def f(x):
            with t.autocast("cpu"):
                with t.no_grad():
                    y = x @ w.t()
                return y, x.relu() @ (w * 1).t()

        self.check(f, self.given["a"])

    def test_weight_is_cast_once(self):
        t, w = self.torch, self.given["w"].clone().requires_grad_()

        def f(x):
            with t.autocast("cpu"):
                return t.nn.functional.linear(x, w) + t.nn.functional.linear(x + 1, w)

        def gradient(function):
            w.grad = None
            function(self.given["a"]).float().sum().backward()
            return w.grad

        self.close(gradient(wick.compile(f)), gradient(f), 2e-2)
        text = self.one_graph(f, self.given["a"])
        self.assertEqual(text.count("aten::to"), 3 if self.torch.__name__ == "torch" else 4, text)

    def test_functions_without_a_look_inside(self):
        t = self.torch

        @wick.compiler.allow_in_graph
        def inner(x):
            with t.autocast("cpu", enabled=False):
                y = x @ x.t()
            return y, x @ x.t()

        def f(x):
            with t.autocast("cpu"):
                return inner(x)

        self.check(f, self.given["a"])

    def test_cuda(self):
        t, w = self.torch, self.given["w"]

        def f(x):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scope = t.autocast("cuda")
            with scope:
                return x @ w.t()

        self.same(self.outcome(wick.compile(f), self.given["a"]), self.outcome(f, self.given["a"]))

    # ---- models ----

    def train(self, make, given, compiled):
        """Losses of some steps of training within a scope, and the parameters after them."""
        nn, t = self.torch.nn, self.torch
        t.manual_seed(4)
        model = make(nn)
        called = wick.compile(model) if compiled else model
        losses = []
        for _ in range(3):
            with self.on():
                loss = called(given).float().square().mean()
            loss.backward()
            with t.no_grad():
                for each in model.parameters():
                    if each.grad is not None:
                        each -= 0.01 * each.grad
                        each.grad = None
            losses.append(loss.item())
        return losses, [each.detach() for each in model.parameters()]

    def check_training(self, make, given):
        expected, weights = self.train(make, given, False)
        wick.compiler.reset()
        got, made = self.train(make, given, True)
        for x, y in zip(got, expected):
            self.assertLess(abs(x - y), 0.02 * max(1.0, abs(y)))
        for x, y in zip(made, weights):
            self.assertIs(x.dtype, y.dtype)
            self.close(x, y, 2e-2)

    def test_perceptron(self):
        self.check_training(
            lambda nn: nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3)), self.given["a"]
        )

    def test_convolutions(self):
        self.check_training(
            lambda nn: nn.Sequential(
                nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 3)
            ),
            self.given["i"],
        )


AutocastOnWick, AutocastOnPyTorch = in_both(Autocast)


@unittest.skipIf(AutocastOnPyTorch.torch is None, "needs Debian's python3-torch")
class Layers(unittest.TestCase):
    """PyTorch's layers that are made of several operators."""

    def check(self, module, *given):
        torch = AutocastOnPyTorch.torch

        def run(function):
            torch.manual_seed(7)
            module.zero_grad()
            with torch.autocast("cpu"):
                results = list(tensors_in(function(*given)))
            sum(each.float().square().sum() for each in results if each.requires_grad).backward()
            return results, [each.grad.clone() for each in module.parameters() if each.grad is not None]

        expected = run(module)
        wick.compiler.reset()
        before = wick.compiler.counters.graph_count
        got = run(wick.compile(module))
        self.assertEqual(wick.compiler.counters.graph_count - before, 1)
        for some, others in zip(got, expected):
            self.assertEqual([(x.dtype, x.shape) for x in some], [(y.dtype, y.shape) for y in others])
            for x, y in zip(some, others):
                scale = max(1.0, y.double().abs().max().item())
                self.assertLess((x.double() - y.double()).abs().max().item(), 3e-2 * scale)
        self.assertEqual([x.stride() for x in got[0]], [y.stride() for y in expected[0]])

    def test_recurrent(self):
        torch = AutocastOnPyTorch.torch
        nn, x = torch.nn, torch.randn(5, 3, 4)
        self.check(nn.LSTM(4, 6), x)
        self.check(nn.LSTM(4, 6, num_layers=2, bidirectional=True, batch_first=True), x)
        self.check(nn.LSTM(4, 6, proj_size=2, bias=False), x)
        self.check(nn.LSTM(4, 6, num_layers=2, dropout=0.5), x)
        self.check(nn.GRU(4, 6, num_layers=2, bidirectional=True), x)
        self.check(nn.RNN(4, 6), x)
        self.check(nn.RNN(4, 6, nonlinearity="relu", bias=False), x)

    def test_cells(self):
        torch = AutocastOnPyTorch.torch
        nn, x = torch.nn, torch.randn(3, 4)
        self.check(nn.LSTMCell(4, 6), x)
        self.check(nn.GRUCell(4, 6), x)
        self.check(nn.RNNCell(4, 6), x)
        self.check(nn.RNNCell(4, 6, nonlinearity="relu", bias=False), x)

    def test_attention(self):
        torch = AutocastOnPyTorch.torch
        nn, x = torch.nn, torch.randn(5, 3, 8)
        self.check(nn.MultiheadAttention(8, 2), x, x + 1, x - 1)
        self.check(nn.TransformerEncoderLayer(8, 2, 16), x)

    def test_others_end_the_graph(self):
        torch = AutocastOnPyTorch.torch
        a, s = torch.randn(4, 5), torch.randn(4, 4)
        for function in (
            lambda: torch.einsum("ij,kj,lj->ikl", a, a, a),
            lambda: torch.linalg.matrix_power(s, 3),
            lambda: torch.linalg.pinv(a),
            lambda: torch.cov(a),
            lambda: torch.linalg.norm(a.bfloat16()),
        ):

            def within(function=function):
                with torch.autocast("cpu"):
                    return function() + 1

            expected = within()
            wick.compiler.reset()
            got = wick.compile(within)()
            self.assertIs(got.dtype, expected.dtype)
            self.assertLess((got.double() - expected.double()).abs().max().item(), 3e-2 * expected.abs().max().item())
            explained = wick.compiler.explain(within)()
            self.assertIn("within torch.autocast", str(explained.break_reasons[0]))

    def test_sums_of_products(self):
        torch = AutocastOnPyTorch.torch

        class Sums(torch.nn.Module):
            def __init__(self, text):
                super().__init__()
                self.text = text
                self.weight = torch.nn.Parameter(torch.randn(4, 5))

            def forward(self, x):
                return torch.einsum(self.text, x, self.weight)

        x = torch.randn(3, 4)
        self.check(Sums("ij,jk->ik"), x)
        self.check(Sums("ij,jk"), x)
        self.check(Sums("ij,jk->ijk"), x)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
