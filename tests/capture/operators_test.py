"""Functions of torch and its modules in captured code: one graph each, and the results of plain calls."""

import unittest

import wick
import wick.compiler
from worlds import in_both, tensors_in

# With a and b of 4 x 5, p and q like them between 0 and 1, k four classes below 5, s four signs, and i a batch of 2 x 4 x 6 x 6.
CALLS = """
t.zeros_like(a) + t.ones_like(b)
t.full_like(a, 2.0) + t.empty_like(a).fill_(1)
t.tensor([1.0, 2.0]) + 1
t.as_tensor([1.0, 2.0]) + 1
a.new_zeros(3) + a.new_ones(3) + a.new_full((3,), 2.0)
a.new_tensor([1.0, 2.0]) + 1
t.arange(5) + t.linspace(0, 1, 5)
t.zeros(3, device=t.device("cpu")) + 1
a + t.numel(a) + a.nelement() + a.ndimension() + len(a)
a.cpu() + 1
a.to("cpu") + 1
a.to(t.float64) + a.double()
a.half().float() + a.type(t.float64)
a + 1 if t.is_floating_point(a) and not t.is_complex(a) else a
a.view(t.Size([5, 4])) + a.t()
a.clamp(min=t.finfo(a.dtype).min, max=t.iinfo(t.int16).max)
a + a.stride(0)
a.clone(memory_format=t.contiguous_format) + a.t().contiguous().t()
i.contiguous(memory_format=t.channels_last) * 2
F.mse_loss(a, b) + F.mse_loss(a, b, reduction="sum")
F.mse_loss(a, b, reduction="none")
F.l1_loss(a, b) + F.smooth_l1_loss(a, b) + F.huber_loss(a, b)
F.cross_entropy(a, k) + F.cross_entropy(a, k, label_smoothing=0.1, weight=t.ones(5))
F.nll_loss(F.log_softmax(a, 1), k)
F.binary_cross_entropy(p, q) + F.binary_cross_entropy_with_logits(a, q, pos_weight=t.ones(5))
F.kl_div(F.log_softmax(a, 1), F.softmax(b, 1), reduction="batchmean")
F.poisson_nll_loss(a, q)
F.hinge_embedding_loss(a, t.sign(b))
F.margin_ranking_loss(a[:, 0], b[:, 0], s)
F.multi_margin_loss(a, k)
F.multilabel_margin_loss(a, t.zeros(4, 5, dtype=t.long))
F.multilabel_soft_margin_loss(a, (q > 0.5).float())
F.soft_margin_loss(a, t.sign(q - 0.5))
F.cosine_embedding_loss(a, b, s)
F.triplet_margin_loss(a, b, a + b)
F.ctc_loss(t.stack([a, b]).log_softmax(2).transpose(0, 1), k.view(2, 2) % 4 + 1, t.tensor([4, 4]), t.tensor([2, 2]))
F.gelu(a) + F.gelu(a, approximate="tanh") + F.silu(a) + F.mish(a)
F.softplus(a) + F.elu(a) + F.leaky_relu(a, 0.1) + F.hardtanh(a) + F.relu6(a)
F.hardswish(a) + F.hardsigmoid(a) + F.logsigmoid(a) + F.softshrink(a) + F.selu(a) + F.celu(a)
F.glu(i, 1)
F.prelu(a, t.tensor([0.1])) + F.rrelu(a) + F.threshold(a, 0.1, 2.0)
F.rrelu(a, training=True)
F.softmax(a, 1) + F.softmin(a, 0) + F.log_softmax(b, 1)
F.one_hot(k, 5)
F.pad(a, (1, 1)) * F.pad(b[None], (1, 1), mode="reflect")
F.interpolate(i, scale_factor=2, mode="bilinear") + F.interpolate(i, size=(12, 12))
F.interpolate(i, scale_factor=(2, 2), mode="bicubic", align_corners=True)
F.grid_sample(i, i[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False)
F.affine_grid(a[:, :3].view(2, 2, 3), (2, 1, 3, 3), align_corners=False)
F.unfold(i, 2)
F.fold(F.unfold(i, 2), (6, 6), 2)
F.adaptive_avg_pool2d(i, 2) + F.adaptive_max_pool2d(i, 2)
F.max_pool2d(i, 2) + F.avg_pool2d(i, 2) + F.lp_pool2d(i, 2, 2)
F.max_pool2d(i, 2, return_indices=True)
F.conv2d(i, i[:, :, :3, :3], padding=1) + F.conv2d(i, i[:, :, :1, :1], padding="same")
F.conv_transpose2d(i, i[:1].transpose(0, 1)[:, :, :2, :2], stride=2)
F.batch_norm(i, t.zeros(4), t.ones(4), training=True)
F.layer_norm(a, (5,)) + F.normalize(b)
F.group_norm(i, 2) + F.instance_norm(i) + F.local_response_norm(i, 2)
F.embedding(k, a.t().contiguous())
F.embedding_bag(k, a.t().contiguous(), t.tensor([0, 2]))
F.linear(a, b, b[:, 0]) + F.bilinear(a, b, t.ones(4, 5, 5))
F.cosine_similarity(a, b) + F.pairwise_distance(a, b)
F.pdist(a)
F.dropout(a, 0.5) + F.dropout(a, 0.5, training=False)
F.alpha_dropout(a, 0.5, True) + F.gumbel_softmax(a)
F.pixel_shuffle(i, 2)
t.cdist(a, b) + t.mm(a, b.t()) + t.einsum("ij,kj->ik", a, b) + t.tensordot(a, b, dims=([1], [1]))
t.baddbmm(t.zeros(1, 4, 4), a[None], b.t()[None]) + t.addmm(t.zeros(4, 4), a, b.t())
t.outer(a[0], b[0]) + t.diag(a[0]) + t.triu(a[:, :1] + b[0])[:1]
t.meshgrid(a[0], b[0], indexing="ij")
t.stft(a.reshape(-1), 8, return_complex=True).abs()
t.fft.fft(a).abs() + t.fft.rfft(a, 8).abs().mean()
t.linalg.inv(a[:, :4]) + t.inverse(b[:, :4])
t.linalg.svd(a)[1] + t.linalg.qr(b)[1].diagonal().abs()
t.linalg.solve(a[:, :4], b) + t.det(a[:, :4]) + t.linalg.norm(a)
t.linalg.cholesky(a @ a.t() + 8 * t.eye(4)) + t.linalg.eigvalsh(a @ a.t())
t.norm(a) + a.norm(2, dim=1) + t.logsumexp(a, 1) + a.std(1) + b.var(1)
t.split(a, 2) + a.chunk(2) + t.unbind(b)
t.cat([a, b]) + t.stack([a, b]).view(8, 5) + t.hstack([a[:, :2], b[:, :3]]).repeat(2, 1)
t.where(a > 0, a, b) + t.lerp(a, b, 0.5) + t.maximum(a, b) + a.masked_fill(a > 0, 0.0)
a.topk(2)
a.sort(descending=True)
t.argmax(a, 1) + a.argsort(1)[:, 0] + a.max(1).indices
a.cumsum(0) + b.cumprod(1) + a.flip(0) + a.roll(1) + t.logcumsumexp(a, 1)
t.zeros(4, 5).scatter_(1, k[:, None], 1.0) + t.zeros(4, 5).scatter_add(1, k[:, None], a)
a.gather(1, k[:, None]) + t.take_along_dim(a, k[:, None], 1) + a.index_select(1, k)[:, :1]
a[k % 4] + a[:, [0, 2, 1, 3, 4]] + a[k % 4, 1:2] + a[None][0] + a[..., :]
t.isclose(a, b) | t.isnan(a) | t.isin(k, k)[:, None] | (a > 0).all() | t.logical_and(a > 0, b > 0)
t.bucketize(a, b[0].sort()[0]) + t.searchsorted(b[0].sort()[0], a)
t.histc(a, 4) + t.quantile(a, 0.5) + a.median() + a.mode()[0]
t.rand_like(a) + t.randn(4, 5) + t.randn_like(b)
t.empty(3).normal_() + t.empty(3).uniform_() + t.bernoulli(p)[0, 0]
t.multinomial(p, 2) + t.randint(0, 5, (4, 2)) + t.randperm(4)[:, None]
t.complex(a, b).abs() + t.view_as_real(t.complex(a, b))[..., 0]
t.special.expit(a) + t.special.erf(b) + t.erfinv(a.tanh()) + t.lgamma(p) + t.digamma(q) + t.i0(a)
"""
# These end a graph, for the reasons that docs/compile.md names.
BREAKS = """
F.one_hot(k)
a.max().item() + 1
a + a.storage_offset()
a.argmax().tolist()
k if k.equal(k) else a
"""


class Operators:
    def setUp(self):
        self.torch.manual_seed(2)
        t = self.torch
        a, b = t.randn(4, 5), t.randn(4, 5)
        self.given = {
            "t": t, "F": t.nn.functional, "a": a, "b": b, "p": a.sigmoid(), "q": b.sigmoid(), "k": t.tensor([0, 3, 1, 4]),
            "s": t.tensor([1.0, -1.0, 1.0, -1.0]), "i": t.randn(2, 4, 6, 6),
        }

    def function_of(self, line):
        return eval("lambda: " + line, dict(self.given))  # noqa: S307

    def run_seeded(self, function):
        self.torch.manual_seed(5)
        return list(tensors_in(function()))

    def compare(self, line):
        plain = self.function_of(line)
        expected = self.run_seeded(plain)
        wick.compiler.reset()
        compiled = wick.compile(plain)
        for _ in range(2):
            got = self.run_seeded(compiled)
            self.assertEqual(len(got), len(expected))
            for x, y in zip(got, expected):
                self.assertEqual((x.shape, x.dtype, x.stride()), (y.shape, y.dtype, y.stride()))
                if x.numel() == 0:
                    continue
                scale = max(1.0, y.double().abs().max().item())
                self.assertLess((x.double() - y.double()).abs().max().item(), 2e-5 * scale)

    def test_one_graph(self):
        for line in CALLS.strip().splitlines():
            with self.subTest(call=line):
                self.compare(line)
                wick.compiler.reset()
                explained = wick.compiler.explain(self.function_of(line))()
                self.assertEqual((explained.graph_count, explained.break_reasons), (1, []))

    def gradients_of(self, function):
        """The results' gradients for a, b and i, where there are any; the text of an error otherwise."""
        leaves = [self.given[name] for name in "abi"]
        for leaf in leaves:
            leaf.grad = None
        results = [r for r in self.run_seeded(function) if r.requires_grad]
        if not results:
            return []
        try:
            sum((r.abs() * r.abs()).sum() for r in results).backward()
        except RuntimeError as error:
            return [type(error)]
        return [leaf.grad for leaf in leaves]

    def test_gradients(self):
        for name in "abi":
            self.given[name].requires_grad_()
        for name in "pq":
            self.given[name] = self.given["ab"["pq".index(name)]].sigmoid().detach()
        for line in CALLS.strip().splitlines():
            with self.subTest(call=line):
                plain = self.function_of(line)
                expected = self.gradients_of(plain)
                wick.compiler.reset()
                got = self.gradients_of(wick.compile(plain))
                self.assertEqual([g is None for g in got], [g is None for g in expected])
                for x, y in zip(got, expected):
                    if y is None or isinstance(y, type):
                        continue
                    self.assertEqual((x.shape, x.dtype), (y.shape, y.dtype))
                    scale = max(1.0, y.double().abs().max().item())
                    self.assertLess((x.double() - y.double()).abs().max().item(), 1e-4 * scale)

    def test_breaks(self):
        for line in BREAKS.strip().splitlines():
            with self.subTest(call=line):
                function = self.function_of(line)
                got, expected = wick.compile(function)(), function()
                self.assertEqual(str(got), str(expected))
                wick.compiler.reset()
                self.assertGreater(wick.compiler.explain(function)().graph_break_count, 0)


OperatorsOnWick, OperatorsOnPyTorch = in_both(Operators)

if __name__ == "__main__":
    unittest.main()
