# as Python: PyTorch's scripts negate and add, and bytes have no negative numbers
# expect: (tensor([   0.,   -1.,   -2., -254.]), tensor([  0, 255, 254,   2], dtype=torch.uint8), tensor([  2.5000,   5.0000,   7.5000, 637.5000]), tensor([7.0000, 3.5000, 2.3333, 0.0275]), tensor([2, 4, 8, 0], dtype=torch.uint8), tensor([2., 4., 8., inf]), tensor([0, 1, 1, 7], dtype=torch.uint8), tensor([0.5000, 1.5000, 1.5000, 7.5000]), tensor([ 1, -1]), tensor([ 2, -1]), tensor([2, 4, 8, 0], dtype=torch.uint8), tensor([1, 0, 1, 5], dtype=torch.uint8), tensor([ 7, -1]), tensor([ 6, -5]), tensor([False,  True,  True,  True]), tensor([ True,  True, False, False]), tensor([0., 1.], dtype=torch.float16), tensor([ 0.5000, -2.0000], dtype=torch.float16), tensor([2., 1.]), tensor([  -0.5000,   -1.5000,   -2.5000, -254.5000]), tensor([  -1.+2.j,   -2.+2.j,   -3.+2.j, -255.+2.j]), tensor([250, 244, 232,   0], dtype=torch.uint8), tensor([0, 0]))
def main():
    bytes = torch.tensor([1, 2, 3, 255], dtype=torch.uint8)
    ints = torch.tensor([3, -2])
    bools = torch.tensor([True, False])
    halves = torch.tensor([0.5, 3.0], dtype=torch.float16)
    return (1.0 - bytes, 1 - bytes, 2.5 * bytes, 7 / bytes, 2 ** bytes, 2.0 ** bytes,
            7 % bytes, 7.5 % bytes, 7 % ints, -7 % ints, 1 << bytes, 5 & bytes, 5 | ints, 5 ^ ints,
            1.5 < bytes, 2 >= bytes, 7 % halves, 1 - halves, 1.0 + bools, 0.5 - bytes, 2j - bytes, -3 << bytes, 2 >> ints.abs())
