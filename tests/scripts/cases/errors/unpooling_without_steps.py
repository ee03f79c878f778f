# expect error: strides should be greater than zero, but got stride: [2, 0, 2]
def main():
    x = torch.ones([1, 1, 1, 1, 1])
    return torch.max_unpool3d(x, x.long(), [2, 2, 2], [2, 0, 2], [0, 0, 0])
