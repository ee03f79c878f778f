"""PyTorch's layers in captured code: one graph each, results and gradients of plain calls, in training and evaluation."""

import copy
import unittest
import warnings

import wick
import wick.compiler

try:
    import torch
    from torch import nn
except ImportError:
    torch = None

# Layers by what they take: a picture of 2 x 4 x 8 ("line"), 2 x 4 x 8 x 8 ("plane"), 2 x 4 x 4 x 4 x 4 ("volume") or 3 x 6 ("rows").
LAYERS = {
    "line": """
Conv1d(4, 6, 3) | ConvTranspose1d(4, 6, 3) | MaxPool1d(2) | AvgPool1d(2) | AdaptiveAvgPool1d(3) | AdaptiveMaxPool1d(3) | LPPool1d(2, 2)
ReflectionPad1d(1) | ConstantPad1d(1, 2.0) | InstanceNorm1d(4) | RNN(8, 5) | RNN(8, 5, nonlinearity="relu", batch_first=True)
LSTM(8, 5, 2, dropout=0.1, bidirectional=True) | LSTM(8, 5, proj_size=3) | GRU(8, 5, batch_first=True) | GRU(8, 5, 2, dropout=0.5)
TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
""",
    "plane": """
Conv2d(4, 6, 3, padding=1, groups=2) | Conv2d(4, 6, 3, padding="same", padding_mode="reflect") | ConvTranspose2d(4, 6, 3, stride=2, output_padding=1)
MaxPool2d(2, return_indices=True) | AvgPool2d(2) | AdaptiveAvgPool2d((2, None)) | AdaptiveMaxPool2d(3) | LPPool2d(2, 2) | FractionalMaxPool2d(2, output_size=3)
ReflectionPad2d(1) | ReplicationPad2d(1) | ZeroPad2d(1) | Softmax2d() | BatchNorm2d(4) | GroupNorm(2, 4) | LocalResponseNorm(2)
InstanceNorm2d(4, affine=True, track_running_stats=True) | PixelShuffle(2) | PixelUnshuffle(2) | ChannelShuffle(2) | Unfold(2) | Dropout2d(0.3)
Upsample(scale_factor=2, mode="nearest") | Upsample(scale_factor=2, mode="bicubic") | UpsamplingBilinear2d(scale_factor=2)
""",
    "volume": """
Conv3d(4, 6, 3) | ConvTranspose3d(4, 6, 3) | MaxPool3d(2) | AvgPool3d(2) | AdaptiveAvgPool3d(2) | AdaptiveMaxPool3d(2) | ReplicationPad3d(1)
ConstantPad3d(1, 2.0) | BatchNorm3d(4) | InstanceNorm3d(4) | Upsample(scale_factor=2, mode="trilinear")
""",
    "rows": """
ELU() | Hardshrink() | Hardsigmoid() | Hardtanh() | Hardswish() | LeakyReLU() | LogSigmoid() | PReLU() | ReLU() | ReLU6() | RReLU() | SELU() | CELU()
GELU() | Sigmoid() | SiLU() | Mish() | Softplus() | Softshrink() | Softsign() | Tanh() | Tanhshrink() | Threshold(0.1, 20) | GLU() | Softmin(dim=1)
Softmax(dim=1) | LogSoftmax(dim=1) | Linear(6, 3) | Flatten(0) | Unflatten(1, (2, 3)) | Dropout(0.3) | AlphaDropout(0.3) | FeatureAlphaDropout(0.3)
Sequential(nn.Linear(6, 3), nn.ReLU(inplace=True)) | LayerNorm(6) | BatchNorm1d(6) | RNNCell(6, 5) | LSTMCell(6, 5) | GRUCell(6, 5)
utils.spectral_norm(nn.Linear(6, 3)) | utils.parametrizations.spectral_norm(nn.Linear(6, 3))
utils.parametrizations.orthogonal(nn.Linear(6, 6))
""",
    "line, line": "Transformer(8, 2, 1, 1, 16, batch_first=True) | TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 1)",
    "line, line, line": "MultiheadAttention(8, 2)",
    "classes": "Embedding(5, 6, padding_idx=0)",
    "classes, starts": 'EmbeddingBag(5, 6, mode="sum") | EmbeddingBag(5, 6, mode="mean")',
    "rows, rows": "Bilinear(6, 6, 2) | CosineSimilarity() | PairwiseDistance()",
    "rows, shares": """
L1Loss() | MSELoss() | SmoothL1Loss() | HuberLoss() | BCEWithLogitsLoss() | PoissonNLLLoss() | KLDivLoss(reduction="batchmean") | SoftMarginLoss()
MultiLabelSoftMarginLoss() | HingeEmbeddingLoss()
""",
    "rows, classes": "CrossEntropyLoss() | CrossEntropyLoss(label_smoothing=0.1) | NLLLoss() | MultiMarginLoss()",
    "rows, rows + 1, rows - 1": "TripletMarginLoss() | TripletMarginWithDistanceLoss()",
}
# These end a graph: numbers that elements decide, functions with a derivative of their own, classes of tensors.
BREAKS = {
    "rows": "LazyLinear(3)",
    "plane": "BatchNorm2d(4, momentum=None) | CrossMapLRN2d(2)",
    "classes": "Embedding(5, 3, max_norm=1.0)",
    "rows, rows, shares": "GaussianNLLLoss()",
}


def layers(table):
    for inputs, texts in table.items():
        for text in texts.replace("\n", " | ").split(" | "):
            if text.strip():
                yield inputs, text.strip()


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_in(each)


@unittest.skipIf(torch is None, "needs Debian's python3-torch")
class Layers(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        self.inputs = {
            "line": torch.randn(2, 4, 8), "plane": torch.randn(2, 4, 8, 8), "volume": torch.randn(2, 4, 4, 4, 4),
            "rows": torch.randn(3, 6), "shares": torch.rand(3, 6), "classes": torch.tensor([0, 2, 1]), "starts": torch.tensor([0, 2]),
        }

    def run_of(self, layer, module, given, gradients):
        torch.manual_seed(1)
        with torch.set_grad_enabled(gradients):
            results = list(tensors_in(layer(*given)))
        found = [r.detach().clone() for r in results]
        wanted = [r for r in results if r.requires_grad]
        if gradients and wanted:
            sum((r * r).sum() for r in wanted).backward()
            found += [p.grad for p in module.parameters()]
        return found + [b.clone() for b in module.buffers()]

    def compare(self, inputs, text, training, gradients, graphs):
        plain = eval("nn." + text, {"nn": nn}).train(training)  # noqa: S307
        module = copy.deepcopy(plain)
        given = eval(f"({inputs},)", dict(self.inputs))  # noqa: S307
        expected = self.run_of(plain, plain, given, gradients)
        wick.compiler.reset()
        counters = wick.compiler.counters
        before = counters.graph_count, counters.graph_break_count
        got = self.run_of(wick.compile(module), module, given, gradients)
        if graphs:
            self.assertEqual((counters.graph_count - before[0], counters.graph_break_count - before[1]), (1, 0))
        self.assertEqual([g is None for g in got], [e is None for e in expected])
        for x, y in zip(got, expected):
            if y is None:
                continue
            self.assertEqual((x.shape, x.dtype), (y.shape, y.dtype))
            scale = max(1.0, y.double().abs().max().item())
            self.assertLess((x.double() - y.double()).abs().max().item(), 1e-4 * scale)

    def all_of(self, table, graphs):
        for inputs, text in layers(table):
            for training, gradients in ((True, True), (True, False), (False, False)):
                with self.subTest(layer=text, training=training, gradients=gradients):
                    self.compare(inputs, text, training, gradients, graphs)

    def test_one_graph(self):
        self.all_of(LAYERS, True)

    def test_breaks(self):
        self.all_of(BREAKS, False)


if __name__ == "__main__":
    unittest.main()
