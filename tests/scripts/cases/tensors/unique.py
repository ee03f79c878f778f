# expect: (tensor([1, 3]), tensor([1, 3]), tensor([[1, 0, 1],
# expect:         [0, 0, 1]]), tensor([1, 3]), tensor([3, 3]), tensor([1, 3]), tensor([[1, 0, 1],
# expect:         [0, 0, 1]]), tensor([3, 3]), tensor([[0, 5],
# expect:         [1, 2]]))
def main():
    x = torch.tensor([[3, 1, 3], [1, 1, 3]])
    a = torch.unique(x)
    b = torch.unique(x, return_inverse=True)
    c, d = torch.unique(x, return_counts=True)
    e, f, g = torch.unique(x, True, True, True)
    h = torch.unique(torch.tensor([[1, 2], [1, 2], [0, 5]]), dim=0)
    return a, b[0], b[1], c, d, e, f, g, h
