# expect: ([tensor([ 2., -1.]), tensor([[4.]])], [tensor([2., 6.]), tensor([[7.]])], [tensor([1.1250, 6.0000]), tensor([[5.]])], [tensor([2., 6.]), tensor([[7.]])], [tensor([2., 6.]), tensor([[7.]])], [tensor([1.0000, 1.4142]), tensor([[1.7321]])])
def main():
    a = [torch.tensor([1.0, -2.0]), torch.tensor([[3.0]])]
    b = [torch.tensor([0.5, 4.0]), torch.tensor([[2.0]])]
    added = torch._foreach_add(a, 1)
    joined = torch._foreach_add(a, b, alpha=2)
    fused = torch._foreach_addcmul(a, b, b, 0.5)
    torch._foreach_neg_(b)
    torch._foreach_div_(b, a)
    torch._foreach_maximum_(b, joined)
    return added, joined, fused, b, torch._foreach_maximum(a, b), torch._foreach_sqrt(torch._foreach_abs(a))
