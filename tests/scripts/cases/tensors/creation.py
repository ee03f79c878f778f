# expect: (tensor([[0., 0., 0.],
# expect:         [0., 0., 0.]]), tensor([1, 1]), tensor([[7.5000, 7.5000],
# expect:         [7.5000, 7.5000]]), tensor([0, 1, 2, 3, 4]), tensor([1, 4, 7]), tensor([1.5000, 2.5000]), tensor([[1, 2],
# expect:         [3, 4]]), tensor([[1., 0.],
# expect:         [0., 1.]]), tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000]))
def main():
    return torch.zeros(2, 3), torch.ones([2], dtype=torch.int64), torch.full([2, 2], 7.5), torch.arange(5), torch.arange(1, 10, 3), torch.tensor([1.5, 2.5]), torch.tensor([[1, 2], [3, 4]]), torch.eye(2), torch.linspace(0, 1, 5)
