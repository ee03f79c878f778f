# expect: (tensor([1, 2, 1]), tensor([1, 2, 1]), tensor([0, 0, 1, 2]), tensor([1, 2, 1]), tensor([2, 1, 1]), tensor([1, 2, 1]), tensor([0, 0, 1, 2]), tensor([2, 1, 1]), tensor([[1, 1],
# expect:         [2, 1]]), tensor([[3.],
# expect:         [8.]]), tensor([[2.2361],
# expect:         [5.8310]]), tensor([[2.2361],
# expect:         [5.8310]]))
import torch


def main():
    x = torch.tensor([1, 1, 2, 1])
    a = torch.unique_consecutive(x)
    b, c = torch.unique_consecutive(x, return_inverse=True)
    d, e = torch.unique_consecutive(x, return_counts=True)
    f, g, h = torch.unique_consecutive(x, True, True)
    i = torch.unique_consecutive(torch.tensor([[1, 1], [1, 1], [2, 1]]), dim=0)
    y = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    z = torch.tensor([[0.0, 0.0]])
    j = torch.cdist(y, z, 1.0, "donot_use_mm_for_euclid_dist")
    k = torch.cdist(x1=y, x2=z)
    l = torch.cdist(y, z, compute_mode="use_mm_for_euclid_dist")
    return a, b, c, d, e, f, g, h, i, j, k, l
