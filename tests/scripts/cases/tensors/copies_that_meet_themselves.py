# expect: (tensor([3., 4., 5., 3., 4., 5.]), tensor([[2., 3.],
# expect:         [2., 3.]]))
def main():
    u = torch.arange(6.0)
    u.copy_(u)
    u[:3].copy_(u[:3])
    u[:3] = u[3:]
    m = torch.arange(4.0).view(2, 2)
    m[0] = m[1]
    return u, m
