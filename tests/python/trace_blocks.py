"""Modules as torchvision, transformers and others have them, for trace_modules_test.py.

BLOCKS holds (name, constructor, shapes of the example inputs, shapes of other inputs). A shape
{n: sizes} is of ints below n. No other shapes: the block serves those of its example alone.
"""

from typing import List, Tuple

from wick import jit, nn, torch

F = torch.nn.functional


class Scale(nn.Module):
    """With a branch, for scripting."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x, n: int):
        if bool(x.sum() > 0):
            return x * self.weight * n
        return x - self.weight


def conv_norm(i, o, k=3, s=1, groups=1, act=nn.ReLU):
    return nn.Sequential(
        nn.Conv2d(i, o, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o), act()
    )


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1 = conv_norm(i, o, 3, stride)
        self.conv2 = nn.Conv2d(o, o, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = nn.Conv2d(i, o, 1, stride) if stride > 1 or i != o else None

    def forward(self, x):
        out = self.bn2(self.conv2(self.conv1(x)))
        identity = x if self.downsample is None else self.downsample(x)
        out += identity
        return F.relu(out)


class Bottleneck(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(conv_norm(c, 4, 1), conv_norm(4, 4), conv_norm(4, c, 1))

    def forward(self, x):
        return torch.relu(self.body(x) + x)


class SqueezeExcite(nn.Module):
    def __init__(self, c, r=2):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(c, c // r, 1), nn.Conv2d(c // r, c, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.fc2(F.relu(self.fc1(self.pool(x)))))


class InvertedResidual(nn.Module):
    def __init__(self, c, expand=2):
        super().__init__()
        h = c * expand
        self.layers = nn.Sequential(
            conv_norm(c, h, 1, act=nn.ReLU6), conv_norm(h, h, groups=h, act=nn.Hardswish),
            SqueezeExcite(h), nn.Conv2d(h, c, 1), nn.BatchNorm2d(c),
        )

    def forward(self, x):
        return x + self.layers(x)


class DenseBlock(nn.Module):
    def __init__(self, c, growth, n):
        super().__init__()
        self.layers = nn.ModuleList([conv_norm(c + i * growth, growth) for i in range(n)])

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


class Inception(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = conv_norm(c, 2, 1), conv_norm(c, 3, 3)
        self.c = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_norm(c, 2, 1))

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(x), F.avg_pool2d(x, 3, 1, 1)], 1)


class Fire(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.squeeze = nn.Conv2d(c, 2, 1)
        self.e1, self.e3 = nn.Conv2d(2, 4, 1), nn.Conv2d(2, 4, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.e1(x)), F.relu(self.e3(x))], 1)


class ChannelShuffle(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        n, c, h, w = x.size()
        x = x.view(n, self.groups, c // self.groups, h, w)
        return torch.transpose(x, 1, 2).contiguous().view(n, c, h, w)


class ShuffleUnit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.branch = nn.Sequential(conv_norm(c // 2, c // 2, 1), conv_norm(c // 2, c // 2))
        self.shuffle = ChannelShuffle(2)

    def forward(self, x):
        x1, x2 = x.chunk(2, dim=1)
        return self.shuffle(torch.cat((x1, self.branch(x2)), dim=1))


class ConvNeXt(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw = nn.Conv2d(c, c, 3, padding=1, groups=c)
        self.norm, self.up, self.down = nn.LayerNorm(c), nn.Linear(c, 2 * c), nn.Linear(2 * c, c)
        self.scale = nn.Parameter(torch.full([c, 1, 1], 0.1))

    def forward(self, x):
        y = self.norm(self.dw(x).permute(0, 2, 3, 1))
        y = self.down(F.gelu(self.up(y))).permute(0, 3, 1, 2)
        return x + self.scale * y


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv_norm(3, 4, 7, 2)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layer1, self.layer2 = BasicBlock(4, 4), BasicBlock(4, 8, 2)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, 5)

    def forward(self, x):
        x = self.layer2(self.layer1(self.pool(self.stem(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.mid = conv_norm(3, 4), conv_norm(4, 8)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.up(self.mid(F.max_pool2d(a, 2)))
        return self.out(torch.cat([a, b], 1))


class FPN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)
        self.lat = nn.Conv2d(4, 4, 1)

    def forward(self, x):
        c1 = self.c1(x)
        c2 = self.c2(c1)
        top = F.interpolate(c2, size=c1.shape[-2:], mode="nearest")
        return self.lat(c1) + top, c2


class SegHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = conv_norm(3, 4, 3, 2), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        return F.interpolate(
            self.head(self.backbone(x)), size=x.shape[-2:], mode="bilinear", align_corners=False
        )


class PatchEmbed(nn.Module):
    def __init__(self, c=3, d=8, p=4):
        super().__init__()
        self.proj = nn.Conv2d(c, d, p, p)
        self.cls = nn.Parameter(torch.zeros([1, 1, d]))

    def forward(self, x):
        n = x.shape[0]
        x = self.proj(x).flatten(2).transpose(1, 2)
        return torch.cat([self.cls.expand(n, -1, -1), x], dim=1)


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        n, t, d = x.shape
        qkv = self.qkv(x).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d)
        return self.out(y)


class CausalAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.d = heads, d
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        n, t, d = x.size()
        q, k, v = self.c_attn(x).split(self.d, dim=2)
        q, k, v = [y.view(n, t, self.heads, d // self.heads).transpose(1, 2) for y in (q, k, v)]
        mask = torch.tril(torch.ones(t, t, dtype=torch.bool)).view(1, 1, t, t)
        scores = (q @ k.transpose(-2, -1)) / (k.size(-1) ** 0.5)
        scores = scores.masked_fill(~mask, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(n, t, d))


class Block(nn.Module):
    def __init__(self, d, attention):
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(d), attention, nn.LayerNorm(d)
        self.mlp = nn.Sequential(
            nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d), nn.Dropout(0.1)
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = PatchEmbed()
        self.pos = nn.Parameter(torch.randn(1, 5, 8))
        self.blocks = nn.Sequential(Block(8, Attention(8, 2)), Block(8, Attention(8, 2)))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.embed(x) + self.pos))[:, 0])


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 8), nn.Embedding(16, 8)
        self.blocks = nn.ModuleList([Block(8, CausalAttention(8, 2)) for _ in range(2)])
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        places = torch.arange(0, ids.size(1), dtype=torch.long).unsqueeze(0)
        x = self.tokens(ids) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class BertEmbeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.position, self.kind = (nn.Embedding(n, 8) for n in (20, 16, 2))
        self.norm = nn.LayerNorm(8)
        self.register_buffer("position_ids", torch.arange(16).expand(1, -1))

    def forward(self, ids):
        n, t = ids.size()
        kind = torch.zeros([n, t], dtype=torch.long)
        return self.norm(self.word(ids) + self.position(self.position_ids[:, :t]) + self.kind(kind))


class MaskedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, mask):
        return self.attention(x, x, x, key_padding_mask=mask > 0)[0]


class T5Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        return self.weight * x * torch.rsqrt(variance + 1e-6)


class RelativeBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 2)

    def forward(self, x):
        t = x.shape[1]
        q, k = torch.arange(t)[:, None], torch.arange(t)[None, :]
        bucket = torch.clamp(k - q + 16, 0, 31)
        return self.table(bucket).permute(2, 0, 1).unsqueeze(0) + x.sum()


class Rotary(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, d, 2).float() / d))

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[1]).float(), self.frequencies)
        a = torch.cat([angles, angles], -1)
        h = x.shape[-1] // 2
        return x * a.cos() + torch.cat([-x[..., h:], x[..., :h]], -1) * a.sin()


class GatedMLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, 16), nn.Linear(d, 16), nn.Linear(16, d)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gate = nn.Linear(d, 3)
        self.experts = nn.ModuleList([nn.Linear(d, d) for _ in range(3)])

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        return sum(weights[..., i : i + 1] * e(x) for i, e in enumerate(self.experts))


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.rnn = kind(4, 6, **options)

    def forward(self, x):
        output, state = self.rnn(x)
        return output, state


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(12, 4), nn.Linear(12, 5)
        self.lstm = nn.LSTM(4, 6, 1, batch_first=True, bidirectional=True)

    def forward(self, ids):
        return F.log_softmax(self.out(self.lstm(self.embed(ids))[0]), dim=-1)


class UnrolledCell(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell = kind(4, 6)

    def forward(self, x):
        state = None
        for t in range(3):
            state = self.cell(x[t], state)
        return state


class ScriptedLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(4))

    def forward(self, x):
        out: List[torch.Tensor] = []
        h = torch.zeros_like(x[0])
        for i in range(x.size(0)):
            h = torch.tanh(h * self.scale + x[i])
            out.append(h)
        return torch.stack(out), h


class WithScripts(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Linear(4, 4), nn.Linear(4, 2)
        self.loop, self.scaled = jit.script(ScriptedLoop()), jit.script(Scale(4))

    def forward(self, x):
        steps, last = self.loop(self.before(x))
        return self.after(self.scaled(steps, x.shape[0])), last


@jit.script
def clipped(x, low: float, names: List[int]) -> Tuple[torch.Tensor, List[torch.Tensor]]:
    if bool(x.max() > low):
        x = torch.clamp(x, max=low)
    return x, [x * n for n in names]


class CallsFunctions(nn.Module):
    def forward(self, x):
        y, parts = clipped(x * 3, 0.5, [1, x.shape[0]])
        return y + parts[0], parts[1]


class Writes(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, 0] = x[:, 1]
        y[:, 1:].add_(x[:, 1:]).mul_(2)
        y[y < 0] = 0
        return y, y[0].clone().fill_(3)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.mean = nn.Sequential(nn.Linear(6, 4), nn.Tanh()), nn.Linear(4, 2)
        self.decoder = nn.ModuleDict({"one": nn.Linear(2, 4), "two": nn.Linear(4, 6)})

    def forward(self, x):
        z = self.mean(self.encoder(x.flatten(1)))
        y = self.decoder["two"](torch.sigmoid(self.decoder["one"](z)))
        return y.view_as(x), z


class Pyramid(nn.Module):
    def forward(self, x):
        n, c = x.shape[:2]
        pools = [F.adaptive_avg_pool2d(x, k).reshape(n, c * k * k) for k in (1, 2)]
        return torch.cat(pools, dim=1)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, a, b):
        return F.cosine_similarity(self.net(a), self.net(b)), F.pairwise_distance(a, b)


class Einsum(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(2, 4, 3))

    def forward(self, x):
        return torch.einsum("btd,hdk->bhtk", x, self.w)


class TopK(nn.Module):
    def forward(self, x):
        values, places = x.topk(2, dim=-1)
        mask = torch.zeros_like(x).scatter(-1, places, 1.0)
        return values, x * mask, torch.where(x > 0, x, x.exp() - 1)


IMAGE, OTHER = [(1, 3, 16, 16)], [(2, 3, 24, 24)]
MAP, BIG = [(1, 4, 8, 8)], [(3, 4, 12, 10)]
SEQ, LONG = [(2, 5, 8)], [(3, 7, 8)]
ROWS, MORE = [(2, 4)], [(5, 4)]
TIME, LATER = [(3, 2, 4)], [(5, 4, 4)]

BLOCKS = [
    ("linear", lambda: nn.Linear(4, 3), ROWS, MORE),
    ("bilinear", lambda: nn.Bilinear(4, 4, 2), ROWS * 2, MORE * 2),
    ("mlp", lambda: nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 1)), ROWS, MORE),
    (
        "activations",
        lambda: nn.Sequential(nn.ELU(), nn.Mish(), nn.Softplus(), nn.PReLU()),
        ROWS, MORE,
    ),
    ("softmax", lambda: nn.Sequential(nn.LeakyReLU(), nn.LogSoftmax(dim=-1)), ROWS, MORE),
    ("conv1d", lambda: nn.Conv1d(4, 3, 2), [(2, 4, 6)], [(1, 4, 9)]),
    ("conv3d", lambda: nn.Conv3d(2, 3, 2), [(1, 2, 4, 4, 4)], [(2, 2, 5, 4, 6)]),
    ("transposed", lambda: nn.ConvTranspose2d(4, 2, 3, 2, 1), MAP, BIG),
    ("conv_norm", lambda: conv_norm(4, 6), MAP, BIG),
    ("group_norm", lambda: nn.GroupNorm(2, 4), MAP, BIG),
    ("instance_norm", lambda: nn.InstanceNorm2d(4, affine=True), MAP, BIG),
    ("pools", lambda: nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2)), MAP, BIG),
    ("upsample", lambda: nn.Upsample(scale_factor=2), MAP, BIG),
    ("pixel_shuffle", lambda: nn.PixelShuffle(2), MAP, BIG),
    ("flatten", lambda: nn.Sequential(nn.ZeroPad2d(1), nn.Flatten()), MAP, BIG),
    ("basic_block", lambda: BasicBlock(4, 4), MAP, BIG),
    ("strided_block", lambda: BasicBlock(4, 8, 2), MAP, BIG),
    ("bottleneck", lambda: Bottleneck(4), MAP, BIG),
    ("squeeze_excite", lambda: SqueezeExcite(4), MAP, BIG),
    ("inverted_residual", lambda: InvertedResidual(4), MAP, BIG),
    ("dense_block", lambda: DenseBlock(4, 2, 3), MAP, BIG),
    ("inception", lambda: Inception(4), MAP, BIG),
    ("fire", lambda: Fire(4), MAP, BIG),
    ("channel_shuffle", lambda: ChannelShuffle(2), MAP, BIG),
    ("shuffle_unit", lambda: ShuffleUnit(4), MAP, BIG),
    ("convnext", lambda: ConvNeXt(4), MAP, BIG),
    ("resnet", ResNet, IMAGE, OTHER),
    ("unet", UNet, IMAGE, OTHER),
    ("fpn", FPN, IMAGE, OTHER),
    ("segmentation", SegHead, IMAGE, OTHER),
    ("pyramid", Pyramid, MAP, BIG),
    ("patch_embed", PatchEmbed, IMAGE, OTHER),
    ("vit", ViT, [(1, 3, 8, 8)], [(3, 3, 8, 8)]),
    ("attention", lambda: Attention(8, 2), SEQ, LONG),
    ("causal_attention", lambda: CausalAttention(8, 2), SEQ, LONG),
    ("multihead", lambda: MaskedAttention(), [(2, 5, 8), {2: (2, 5)}], None),
    ("encoder_layer", lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), SEQ, LONG),
    (
        "encoder",
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
        SEQ, LONG,
    ),
    ("transformer_block", lambda: Block(8, Attention(8, 4)), SEQ, LONG),
    ("gpt", GPT, [{20: (2, 5)}], [{20: (3, 9)}]),
    ("bert_embeddings", BertEmbeddings, [{20: (2, 5)}], [{20: (3, 9)}]),
    ("t5_norm", lambda: T5Norm(8), SEQ, LONG),
    ("relative_bias", RelativeBias, SEQ, LONG),
    ("rotary", lambda: Rotary(8), SEQ, LONG),
    ("gated_mlp", lambda: GatedMLP(8), SEQ, LONG),
    ("experts", lambda: Experts(8), SEQ, LONG),
    ("einsum", Einsum, [(2, 5, 4)], [(3, 2, 4)]),
    ("rnn", lambda: Recurrent(nn.RNN), TIME, LATER),
    ("rnn_relu", lambda: Recurrent(nn.RNN, nonlinearity="relu"), TIME, LATER),
    ("gru", lambda: Recurrent(nn.GRU, num_layers=2), TIME, LATER),
    ("lstm", lambda: Recurrent(nn.LSTM), TIME, LATER),
    ("lstm_deep", lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), TIME, LATER),
    ("lstm_batch_first", lambda: Recurrent(nn.LSTM, batch_first=True), TIME, LATER),
    ("tagger", Tagger, [{12: (2, 5)}], [{12: (4, 3)}]),
    ("rnn_cell", lambda: UnrolledCell(nn.RNNCell), TIME, [(3, 5, 4)]),
    ("gru_cell", lambda: UnrolledCell(nn.GRUCell), TIME, [(3, 5, 4)]),
    ("lstm_cell", lambda: UnrolledCell(nn.LSTMCell), TIME, [(3, 5, 4)]),
    ("with_scripts", WithScripts, TIME, LATER),
    ("calls_functions", CallsFunctions, ROWS, MORE),
    ("writes", Writes, ROWS, MORE),
    ("autoencoder", Autoencoder, [(2, 2, 3)], [(4, 2, 3)]),
    ("siamese", Siamese, ROWS * 2, MORE * 2),
    ("top_k", TopK, ROWS, MORE),
]
