# expect: (tensor([3., 3.]), tensor([[0., 0.],
# expect:         [1., 1.],
# expect:         [2., 2.]]), [tensor(2.), tensor(2.), tensor(2.)])
def main():
    xs: List[torch.Tensor] = []
    for i in range(3):
        xs.append(torch.full([2], float(i)))
    total = torch.zeros(2)
    for x in xs:
        total = total + x
    rows = [row.sum() for row in torch.ones(3, 2)]
    return total, torch.stack(xs), rows
