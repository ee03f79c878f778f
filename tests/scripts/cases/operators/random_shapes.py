# expect: ([4], True, tensor(0.), tensor(100.), True, tensor([1., 1., 1., 1.]), tensor([True, True, True, True]))
# The numbers are drawn; here only what does not depend on them.
def main():
    torch.manual_seed(3)
    rates = torch.tensor([0.5, 2.0, 9.0, 0.0])
    g = torch._standard_gamma(rates)
    n = torch.binomial(torch.tensor([10.0, 0.0, 100.0]), torch.tensor([0.5, 0.5, 1.0]))
    p = torch._sample_dirichlet(torch.tensor([[1.0, 2.0], [0.1, 5.0]]))
    dropped, mask = torch.native_dropout(torch.ones(4), 0.0, True)
    return g.shape, bool((g > 0).all()), n[1], n[2], bool(((p.sum(-1) - 1).abs() < 1e-5).all()), dropped, mask
