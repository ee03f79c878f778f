# expect: (tensor([[2., 2.],
# expect:         [3., 3.]]), tensor([[ 8.,  8.],
# expect:         [11., 11.]]), tensor(5.), tensor(5., dtype=torch.float64), tensor([[0., 1.],
# expect:         [1., 0.]]), tensor([[0., 0.],
# expect:         [0., 0.]], dtype=torch.float64), tensor([[0., 4.],
# expect:         [5., 0.]]))
def main():
    a = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    s = a.to_sparse()
    ones = torch.ones(2, 2)
    csr = a.to_sparse_csr()
    return torch.sparse.mm(s, ones), torch.sparse.addmm(ones, s, ones, beta=2.0, alpha=3.0), torch.sparse.sum(s), torch.sparse.sum(s, dtype=torch.float64), torch.sparse.softmax(s, 1).to_dense(), torch.sparse.log_softmax(s, 0, dtype=torch.float64).to_dense(), torch.sparse.sampled_addmm(csr, ones, ones).to_dense()
