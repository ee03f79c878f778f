# expect: ([2, 3, 4], 3, 2, 3, 24, [4, 6], [4, 2, 3], [3, 2, 4], [1, 2, 3, 4], [3, 4], [2, 12], 2)
def main():
    x = torch.zeros(2, 3, 4)
    return x.size(), x.size(1), x.shape[0], x.dim(), x.numel(), x.reshape(4, -1).shape, x.permute(2, 0, 1).shape, x.transpose(0, 1).size(), x.unsqueeze(0).shape, x[0:1].squeeze(0).shape, x.flatten(1).shape, len(x)
