# expect: (tensor([[ 7.,  4.],
# expect:         [ 9., 10.]]), tensor([-1.,  7.]), tensor([[1., 0.],
# expect:         [3., 4.]]), tensor([[ 0.5000, -1.0000],
# expect:         [ 1.5000,  2.0000]]), tensor([[ 1., -4.],
# expect:         [ 3.,  4.]]), tensor([[ 3., -2.]]), tensor([[False, False],
# expect:         [ True, False]]))
import torch


def main():
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    return (
        torch.add(input=x, other=2, alpha=3),
        torch.sum(input=x, dim=1),
        torch.relu(input=x),
        torch.div(x, other=2.0),
        torch.where(condition=x > 0, input=x, other=x * 2),
        torch.gather(input=x, dim=0, index=torch.tensor([[1, 0]])),
        torch.eq(input=x, other=3),
    )
