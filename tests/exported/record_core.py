"""Programs that call operators of core ATen by name: those that no program of the other kinds comes to."""
import torch
from record_features import Feature, Plain

A = torch.ops.aten


def values(*sizes):
    torch.manual_seed(len(sizes))
    return torch.randn(*sizes)


def whole(*sizes):
    return (values(*sizes) * 20).int()


def filled(x):
    return A.fill.Scalar(A.empty_strided.default([2, 3], [1, 2]), 1.5) + x


# By the operator: a function of its name, and arguments.
CALLS = {
    "_adaptive_avg_pool2d_backward": (lambda g, x: A._adaptive_avg_pool2d_backward.default(g, x), values(1, 2, 2, 2), values(1, 2, 5, 4)),
    "_adaptive_avg_pool3d": (lambda x: A._adaptive_avg_pool3d.default(x, [2, 1, 2]), values(1, 2, 4, 3, 5)),
    "_embedding_bag": (lambda w, i, o: A._embedding_bag.default(w, i, o, False, 0)[0], values(6, 3), torch.tensor([1, 5, 2, 2]), torch.tensor([0, 2])),
    "avg_pool2d_backward": (lambda g, x: A.avg_pool2d_backward.default(g, x, [2, 2], [2, 2], [0, 0], False, True, None), values(1, 2, 2, 2), values(1, 2, 4, 4)),
    "bitwise_and_scalar": (lambda x: A.bitwise_and.Scalar(x, 6), whole(3, 4)),
    "bitwise_or_scalar": (lambda x: A.bitwise_or.Scalar(x, 6), whole(3, 4)),
    "bitwise_xor_scalar": (lambda x: A.bitwise_xor.Scalar(x, 6), whole(3, 4)),
    "col2im": (lambda x: A.col2im.default(x, [4, 4], [2, 2], [1, 1], [0, 0], [2, 2]), values(1, 8, 4)),
    "convolution_backward": (
        lambda g, x, w: A.convolution_backward.default(g, x, w, [3], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]),
        values(1, 3, 4, 4), values(1, 2, 4, 4), values(3, 2, 3, 3)),
    "div_scalar_mode": (lambda x: (A.div.Scalar_mode(x, 3, rounding_mode="floor"), A.div.Scalar_mode(x, 3, rounding_mode="trunc")), whole(3, 4)),
    "embedding_dense_backward": (lambda g, i: A.embedding_dense_backward.default(g, i, 7, 2, False), values(2, 3, 4), torch.tensor([[1, 2, 6], [1, 0, 2]])),
    "empty_strided": (filled, values(2, 3)),
    "masked_scatter": (lambda x, m, s: A.masked_scatter.default(x, m, s), values(2, 3), torch.tensor([True, False, True]), values(2, 3)),
    "native_dropout": (lambda x: A.native_dropout.default(x, 0.0, True), values(2, 3)),
    "native_group_norm_backward": (
        lambda g, x, m, r, w: A.native_group_norm_backward.default(g, x, m, r, w, 2, 4, 3, 2, [True, True, True]),
        values(2, 4, 3), values(2, 4, 3), values(2, 2), values(2, 2).abs(), values(4)),
    "native_layer_norm_backward": (
        lambda g, x, m, r, w, b: A.native_layer_norm_backward.default(g, x, [4], m, r, w, b, [True, True, True]),
        values(3, 4), values(3, 4), values(3, 1), values(3, 1).abs(), values(4), values(4)),
    "prod_dim_int": (lambda x: A.prod.dim_int(x, 1, True), values(2, 3)),
    "randperm": (lambda x: x[A.sort.default(A.randperm.default(5))[0]], values(5)),
    "reflection_pad1d": (lambda x: A.reflection_pad1d.default(x, [1, 2]), values(2, 4)),
    "reflection_pad2d": (lambda x: A.reflection_pad2d.default(x, [1, 2, 0, 3]), values(2, 4, 5)),
    "reflection_pad3d": (lambda x: A.reflection_pad3d.default(x, [1, 2, 0, 1, 1, 1]), values(2, 3, 4, 5)),
    "replication_pad2d": (lambda x: A.replication_pad2d.default(x, [1, 2, 0, 3]), values(2, 4, 5)),
    "replication_pad3d": (lambda x: A.replication_pad3d.default(x, [1, 2, 0, 1, 1, 1]), values(2, 3, 4, 5)),
    "scatter_value": (lambda x, i: A.scatter.value(x, 1, i, 2.5), values(2, 4), torch.tensor([[0, 3], [1, 1]])),
    "var_dim": (lambda x: (A.var.dim(x, [1]), A.var.dim(x, [0, 1], False, True)), values(3, 4)),
}
# Functions of a matrix whose sizes are open.
OPEN = {
    "sym_numel": lambda x: x.reshape(A.sym_numel.default(x)) + A.sym_numel.default(x),
    "sym_stride": lambda x: x + A.sym_stride.int(x, 0),
    "sym_is_contiguous": lambda x: x.clone() if A.sym_is_contiguous.default(x) else x + 1,
}


def core_cases():
    for name, (function, *args) in CALLS.items():
        yield Feature(f"core_{name}", Plain(function), [(tuple(args), {})])
    for name, function in OPEN.items():
        rows, columns = torch.export.Dim("rows", min=2, max=16), torch.export.Dim("columns", min=2, max=16)
        yield Feature(f"core_{name}", Plain(function), [((values(3, 4),), {}), ((values(5, 2),), {})], dynamic=(({0: rows, 1: columns},),))
