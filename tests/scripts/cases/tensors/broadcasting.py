# expect: (tensor([[0, 0, 0, 0],
# expect:         [0, 1, 2, 3],
# expect:         [0, 2, 4, 6]]), [3, 4], tensor([[[2., 2., 2.],
# expect:          [2., 2., 2.],
# expect:          [2., 2., 2.],
# expect:          [2., 2., 2.],
# expect:          [2., 2., 2.]],
# expect: 
# expect:         [[2., 2., 2.],
# expect:          [2., 2., 2.],
# expect:          [2., 2., 2.],
# expect:          [2., 2., 2.],
# expect:          [2., 2., 2.]]]))
def main():
    column = torch.arange(3).view(3, 1)
    row = torch.arange(4)
    return column * row, (column + row).shape, torch.ones(2, 1, 3) + torch.ones(5, 1)
