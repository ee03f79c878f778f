# expect: (tensor([[2., 1.],
# expect:         [1., 3.]]), tensor(1.), tensor(5.), tensor([[0.5000, 0.5000],
# expect:         [0.5000, 0.7500]]), tensor([[2, 1],
# expect:         [1, 2]], dtype=torch.int32), tensor([2., 2.]), tensor([0.0000, 1.5000, 4.0000]))
def main():
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    q, r = torch.empty(0), torch.empty(0)
    torch.linalg.qr(a, Q=q, R=r)
    sign, log = torch.empty(0), torch.empty(0)
    torch.linalg.slogdet(a, sign=sign, logabsdet=log)
    mantissa, exponent = torch.empty(0), torch.empty(0, dtype=torch.int32)
    torch.frexp(a, mantissa=mantissa, exponent=exponent)
    hist, edges = torch.empty(0), torch.empty(0)
    torch.histogram(a, torch.tensor([0.0, 1.5, 4.0]), hist=hist, bin_edges=edges)
    return (q @ r).round(), sign, torch.exp(log).round(), mantissa, exponent, hist, edges
