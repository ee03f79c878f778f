# expect: ((tensor([[2, 3, 0],
# expect:         [0, 4, 5]]), tensor([[ 2,  1, -3],
# expect:         [ 0,  4, -3]], dtype=torch.int32), tensor([-5.,  4.,  7.])), (tensor([ 1, -3, -1]), tensor([[ 1,  0, -2],
# expect:         [ 0,  2,  0]], dtype=torch.int32)), (tensor([-12,  22,   7]), tensor([True, True, True]), tensor([-5,  8,  2])), (tensor([False,  True]), tensor([True, True])), tensor([[18.4200,  4.5100],
# expect:         [ 4.5100, 18.6100]]), tensor([[18.4200,  4.5100],
# expect:         [ 4.5100, 18.6100]]))
def main():
    x = torch.tensor([[2.3, 1.7, -3.2], [0.6, 4.1, 1.2]])
    n = torch.tensor([-5, 9, 3])
    # Scans are computed in the dtype of their destination.
    sums = torch.cumsum(x, 1, out=torch.empty(0, dtype=torch.int64)), torch.cumprod(x, 0, out=torch.empty(0, dtype=torch.int32)), torch.cumsum(n, 0, out=torch.empty(0))
    # With a number, the result is only copied.
    quotients = torch.div(n, -3, out=torch.empty(3, dtype=torch.int64)), torch.div(x, 2, rounding_mode="floor", out=torch.empty(0, dtype=torch.int32))
    others = torch.mul(n, 2.5, out=torch.empty(3, dtype=torch.int64)), torch.add(n > 0, 2, out=torch.empty(3, dtype=torch.bool)), torch.sub(n, 0.5, out=torch.empty(3, dtype=torch.int64))
    bytes = torch.tensor([[1, 0], [2, 3]], dtype=torch.uint8)
    decided = torch.all(bytes, 1, out=torch.empty(0, dtype=torch.bool)), torch.any(bytes, 0, out=torch.empty(0, dtype=torch.bool))
    dense = torch.empty(0)
    torch.tensordot(x, x, [[1], [1]], out=dense)
    by_count = torch.empty(0)
    torch.tensordot(x, x.t(), 1, out=by_count)
    return sums, quotients, others, decided, dense, by_count
