# expect: ((tensor([[3., 3.],
# expect:         [3., 3.]]), tensor([1., 1.])), tensor([2.]), tensor(1.5000), tensor([0., 0., 0.]), tensor([[[2.4000, 2.4000],
# expect:          [2.4000, 2.4000]]]), tensor([2.4000, 2.4000]), tensor([[5., 5.],
# expect:         [5., 5.]]))
def main():
    one = torch.ones(2, 2)
    no_columns = torch.addmv(torch.ones(1), torch.ones(3, 0), torch.ones(0), beta=2)
    nothing = torch.addmv(torch.tensor(1.5), torch.ones(0, 0), torch.ones(0))
    zero_beta = torch.addmv(torch.full([1], float("nan")), torch.ones(3, 0), torch.ones(0), beta=0)
    whole = torch.baddbmm(torch.ones(1, 2, 2, dtype=torch.int64), one.unsqueeze(0) * 0.7, one.unsqueeze(0))
    wide = torch.addmv(torch.ones(2, dtype=torch.float64), one * 0.7, torch.ones(2))
    real_part = torch.addmm(one, one, one, alpha=2 + 0j)
    lost = torch.full([2, 2], float("nan"))
    zero_alpha = torch.addmm(one, lost, lost, beta=3, alpha=0), torch.addmv(torch.ones(2), lost, lost[0], alpha=0)
    return zero_alpha, no_columns, nothing, zero_beta, whole, wide, real_part
