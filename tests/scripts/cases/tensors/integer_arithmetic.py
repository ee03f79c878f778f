# expect: (tensor([ 3, -4,  0]), tensor([1, 2, 0]), tensor([ 3.5000, -3.5000,  0.0000]), tensor([ 8.5000, -5.5000,  1.5000]), tensor([49, 49,  0]), tensor([ 3, -3,  0]), tensor([ 14, -14,   0]), tensor([3, 1, 0]), tensor([-8,  6, -1]))
def main():
    x = torch.tensor([7, -7, 0])
    return x // 2, x % 3, x / 2, x + 1.5, x * x, torch.div(x, 2, rounding_mode='trunc'), x << 1, x & 3, ~x
