# expect: ([tensor([2.5000, 2.5000, 2.5000]), tensor([[2.5000, 1.0000],
# expect:         [2.5000, 1.0000],
# expect:         [2.5000, 1.0000]]), tensor([[1.0000, 2.5000],
# expect:         [1.0000, 2.5000],
# expect:         [1.0000, 2.5000]]), tensor([[2.5000, 2.5000],
# expect:         [2.5000, 2.5000],
# expect:         [2.5000, 2.5000]]), tensor([0., 0., 0., 0.]), tensor([[1., 0., 0.],
# expect:         [1., 0., 0.],
# expect:         [1., 0., 0.]]), tensor([[0., 0., 0.],
# expect:         [0., 0., 0.],
# expect:         [0., 0., 0.]])], [2, 0])
def filled(value: float) -> List[torch.Tensor]:
    out: List[torch.Tensor] = []
    a = torch.ones(1).expand(3)
    out.append(a.fill_(value))
    b = torch.ones(1, 2).expand(3, 2)
    out.append(b.masked_fill_(torch.tensor([[True, False], [False, False], [False, False]]), value))
    c = torch.ones(1, 2).expand(3, 2)
    out.append(c.masked_fill_(torch.tensor([False, True]), torch.tensor(value)))
    d = torch.ones(1, 2).expand(3, 2)
    out.append(torch.threshold_(d, 1.5, value))
    e = torch.ones(1).expand(4)
    out.append(e.zero_())
    f = torch.ones(1, 3).expand(3, 3)
    out.append(f.tril_())
    g = torch.ones(3, 1).expand(3, 3)
    out.append(g.triu_(1))
    return out


def main():
    empty = torch.ones(1, 0).expand(2, 0)
    return filled(2.5), empty.eq_(empty).mul_(2).size()
