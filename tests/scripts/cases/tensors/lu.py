# expect: (tensor([[6.0000, 3.0000],
# expect:         [0.6667, 1.0000]]), tensor([2, 2], dtype=torch.int32), True, tensor([2, 2], dtype=torch.int32), tensor(0, dtype=torch.int32))
def main():
    a = torch.tensor([[4.0, 3.0], [6.0, 3.0]])
    lu, pivots = torch.lu(a)
    lu2, pivots2, infos = torch.lu(a, get_infos=True)
    torch._assert(a.sum() > 0, 'positive')
    torch._assert(a.dim() == 2, 'matrix')
    return lu, pivots, lu2.equal(lu), pivots2, infos
