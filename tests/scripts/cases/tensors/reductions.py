# expect: (tensor(21.), tensor([2.5000, 4.0000, 4.0000]), tensor(6.), tensor([1, 2]), tensor([5., 6.]), tensor([1, 2]), tensor([[ 8.],
# expect:         [13.]]), tensor(720.), tensor([1., 3., 2.]), tensor(1.8708), tensor(True), tensor(True))
def main():
    x = torch.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])
    values, indices = x.max(1)
    return x.sum(), x.mean(0), x.max(), x.argmax(1), values, indices, x.sum(1, keepdim=True), x.prod(), x.min(dim=0).values, torch.std(x), (x > 2).any(), (x > 0).all()
