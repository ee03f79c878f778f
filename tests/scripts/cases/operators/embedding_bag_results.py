# expect: ((tensor([[ 3.,  5.,  7.],
# expect:         [ 0.,  0.,  0.],
# expect:         [21., 24., 27.]]), tensor([], dtype=torch.int64), tensor([0, 0, 0]), tensor([0, 0, 0])), (tensor([[1.5000, 2.5000, 3.5000],
# expect:         [0.0000, 0.0000, 0.0000],
# expect:         [7.0000, 8.0000, 9.0000]]), tensor([0, 0, 2, 2, 2]), tensor([2, 0, 3]), tensor([2, 0, 3])), (tensor([[ 3.,  4.,  5.],
# expect:         [ 0.,  0.,  0.],
# expect:         [ 9., 10., 11.]]), tensor([0, 0, 2, 2, 2]), tensor([2, 0, 3]), tensor([[1, 1, 1],
# expect:         [0, 0, 0],
# expect:         [3, 3, 3]])), (tensor([[ 3.,  5.,  7.],
# expect:         [ 0.,  0.,  0.],
# expect:         [21., 24., 27.]]), tensor([], dtype=torch.int64), tensor([0, 0, 0, 0]), tensor([0, 0, 0, 0])), (tensor([[ 0.,  1.,  2.],
# expect:         [ 0.,  0.,  0.],
# expect:         [21., 24., 27.]]), tensor([0, 0, 2, 2, 2]), tensor([0, 0, 0]), tensor([0, 0, 0])), (tensor([[ 3.,  5.,  7.],
# expect:         [ 0.,  0.,  0.],
# expect:         [21., 24., 27.]], dtype=torch.float64), tensor([0, 0, 2, 2, 2], dtype=torch.int32), tensor([0, 0, 0], dtype=torch.int32), tensor([0, 0, 0], dtype=torch.int32)), (tensor([[1.5000, 2.5000, 3.5000],
# expect:         [0.0000, 0.0000, 0.0000],
# expect:         [7.0000, 8.0000, 9.0000]]), tensor([0, 0, 2, 2, 2]), tensor([2, 0, 3]), tensor([2, 0, 3])))
def main():
    # Besides the embeddings: the bag of each index, the sizes of the bags, the indices of maxima.
    w = torch.arange(12.0).view(4, 3)
    i = torch.tensor([0, 1, 3, 2, 2])
    o = torch.tensor([0, 2, 2])
    p = torch.tensor([0, 2, 2, 5])
    a = torch.embedding_bag(w, i, o, False, 0)
    b = torch.embedding_bag(w, i, o, False, 1)
    c = torch.embedding_bag(w, i, p, False, 2, False, None, True)
    d = torch.embedding_bag(w, i, p, False, 0, False, None, True)
    e = torch.embedding_bag(w, i, o, False, 0, False, None, False, 1)
    f = torch.embedding_bag(w.double(), i.int(), o.int(), False, 0)
    g = torch.embedding_bag(w, i.int(), o, False, 1)
    return a, b, c, d, e, f, g
