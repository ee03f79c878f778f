# expect: ((tensor([2., 3.]), tensor([2.6667, 2.6667])), tensor([1.0000, 1.5000]), tensor([2.5000, 2.5000]), tensor([[ 8., 11.]]), (tensor([[0., 1.],
# expect:         [4., 5.]]), tensor([ 0, -1,  1], dtype=torch.int32)), [tensor([[0., 0.],
# expect:         [0., 0.],
# expect:         [0., 0.]])], (0.0196078431372549, 102), (6.0999998822808266e-05, 0), tensor([1., 1.]), tensor([[0.2500],
# expect:         [0.2500]]), tensor([[-0., -1.],
# expect:         [-2., -3.],
# expect:         [-4., -5.]]), (tensor([[[ -10.,    1.,   12.,   22.,   33.,   44.,   55.,   66.],
# expect:          [   4.,    9.,   14.,   19.,   24.,   29.,   34.,   39.],
# expect:          [  55.,   29.,    2.,  -24.,  -51.,  -77., -104., -130.]]]), tensor([[[5.0000e-01, 9.6507e-06, 4.9999e-01],
# expect:          [5.0571e-01, 5.4768e-02, 4.3953e-01],
# expect:          [4.9936e-01, 6.4156e-04, 5.0000e-01]]]), [1, 2, 3, 4], tensor([[[ 5.5729,  3.9385,  2.3040,  0.6696, -0.9649, -2.5993, -4.2337,
# expect:           -5.8682]]]), tensor([[[3.9106e-05, 4.9996e-01, 5.0000e-01]]]), [1, 2, 3, 4], tensor([[[ 0.0000, -0.0053,  0.0531,  0.1925,  0.4297,  0.7819,  1.2661,
# expect:            1.8994],
# expect:          [ 0.0000, -0.0053,  0.0531,  0.1925,  0.4297,  0.7819,  1.2661,
# expect:            1.8994],
# expect:          [ 0.0000,  0.0056,  0.1943,  0.4766,  0.7626,  0.9627,  0.9871,
# expect:            0.7462]]]), [1, 2, 3, 4]))
def attention():
    x = (torch.arange(24.0) / 7 - 2).view(1, 3, 8)
    past = (torch.arange(16.0) / 5 - 1).view(1, 2, 2, 4)
    w = (torch.arange(192.0) / 100 - 1).view(24, 8)
    b = torch.arange(24.0) / 10 - 1
    p = (torch.arange(64.0) / 50 - 0.5).view(8, 8)
    c = torch.arange(8.0) / 10
    whole = torch.ops.aten._native_decoder_only_multi_head_attention(x, x, x, 8, 2, w, b, p, c)
    step = torch.ops.aten._native_decoder_only_multi_head_attention(x[:, :1], x[:, :1], x[:, :1], 8, 2, w, b, p, c, None, past, past)
    f = (torch.arange(32.0) / 40 - 0.4).view(4, 8)
    g = (torch.arange(32.0) / 30 - 0.5).view(8, 4)
    layer = torch.ops.aten._transformer_decoder_only_layer_fwd(x, 8, 2, w, b, p, c, True, False, 1e-5, c, c, c, c, f, c[:4], g, c)
    return torch.round(whole[0] * 10), whole[1], whole[2].size(), step[0], step[1], step[3].size(), layer[0], layer[1].size()


def main():
    x = torch.arange(6.0).view(3, 2)
    mean, var = torch.zeros(2), torch.ones(2)
    stats = torch.ops.aten.batch_norm_update_stats(x, mean, var, 0.5)
    combined = torch.ops.aten._compute_linear_combination(x, torch.tensor([[1.0, 0.0, 2.0]]))
    kept = torch.ops.aten._rowwise_prune(x, torch.tensor([True, False, True]), 3)
    zeros = torch.ops.aten._foreach_zero([x])
    grid = torch.ops.aten._choose_qparams_per_tensor(x - 2)
    small = torch.ops.aten._choose_qparams_per_tensor(x / 10000, True)
    seat = torch.ops.aten.set(x, torch.ones(2))
    solved = torch.ops.aten._cholesky_solve_helper(torch.ones(2, 1), 2 * torch.eye(2), False)
    torch.ops.aten._linalg_check_errors(torch.zeros(2, dtype=torch.int32), "linalg.inv", is_matrix=False)
    return stats, mean, var, combined, kept, zeros, grid, small, seat, solved, torch.ops.aten._neg_view(x), attention()
