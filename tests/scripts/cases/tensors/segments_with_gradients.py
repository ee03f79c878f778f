# expect: tensor([[3.0000e+00, 6.0000e+00, 6.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [3.5000e+00, 2.0000e+00, 5.5000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [       nan, 3.5000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [5.0000e-01, 5.0000e-01, 1.0000e+00, 3.3333e-01, 3.3333e-01, 3.3333e-01],
# expect:         [6.0000e+00, 6.0000e+00, 1.8000e+01, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [7.0000e+00, 2.0000e+00, 1.1000e+01, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [0.0000e+00, 2.1000e+01, 0.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [1.0000e+00, 1.0000e+00, 1.0000e+00, 1.0000e+00, 1.0000e+00, 1.0000e+00],
# expect:         [3.0000e+00, 3.0000e+00, 6.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [3.0000e+00, 2.0000e+00, 5.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [      -inf, 6.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [0.0000e+00, 0.0000e+00, 1.0000e+00, 0.0000e+00, 0.0000e+00, 1.0000e+00],
# expect:         [1.0000e+00, 3.0000e+00, 3.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [2.0000e+00, 2.0000e+00, 2.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [       inf, 1.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [1.0000e+00, 0.0000e+00, 1.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [6.0000e+00, 9.0000e+00, 3.6000e+02, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [1.2000e+01, 2.0000e+00, 4.0000e+01, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [1.0000e+00, 7.2000e+02, 0.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00],
# expect:         [6.0000e+00, 3.0000e+00, 3.0000e+00, 9.0000e+01, 7.2000e+01, 6.0000e+01]])
# With a gradient the results are those without one: of means that begin with a number, and of segments that begin late.
def main():
    found: List[Tensor] = []
    for reduce in ["mean", "sum", "max", "min", "prod"]:
        x = torch.arange(1.0, 7.0).requires_grad_()
        y = torch.segment_reduce(x, reduce, lengths=torch.tensor([2, 1, 3]), axis=0, initial=3.0)
        y.sum().backward()
        late = torch.segment_reduce(x, reduce, offsets=torch.tensor([1, 3, 3, 5]), axis=0, unsafe=True, initial=2.0)
        empty = torch.segment_reduce(x, reduce, lengths=torch.tensor([0, 6]), axis=0)
        gradient = x.grad
        assert gradient is not None
        found += [y.detach(), late.detach(), empty.detach(), gradient]
    return torch.stack([torch.cat([t, torch.zeros([6 - len(t)])]) for t in found])
