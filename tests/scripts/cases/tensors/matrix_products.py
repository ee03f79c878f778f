# expect: (tensor([[ 7., 10.],
# expect:         [15., 22.]]), tensor([-1., -1.]), tensor([[ 5., 11.],
# expect:         [11., 25.]]), tensor(2.), tensor([[[ 7., 10.],
# expect:          [15., 22.]]]))
def main():
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    v = torch.tensor([1.0, -1.0])
    return a @ a, a @ v, torch.mm(a, a.t()), torch.matmul(v, v), torch.bmm(a.unsqueeze(0), a.unsqueeze(0))
