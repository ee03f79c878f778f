# expect: (tensor([[6.0000, 0.0000],
# expect:         [2.2500, 6.0000]]), tensor([[0., 0.],
# expect:         [1., 0.]]), [tensor([[ 0.8675, -0.0833],
# expect:         [ 1.0852,  0.6954]])], tensor([[0.6724, 0.3276],
# expect:         [0.7727, 0.2273]]))
def main():
    x = torch.tensor([[0.5, -1.0], [2.0, 0.25]]).requires_grad_()
    # What is written behind a walk was read by it.
    y = torch.mm(x, x)
    y.relu_()
    z = torch.zeros(2, 2)
    z.copy_(y)
    (z * z).sum().backward(None, True)
    y.clamp_(-1, 1)
    chosen = torch.where(z > 0, y, z)
    u = x[[1, 0]]
    first = torch.autograd.grad([torch.nn.functional.gelu(u).sum()], [x])
    u.tanh_()
    made = torch.softmax(u, -1)
    grad = x.grad
    assert grad is not None
    return grad, chosen.detach(), first, made.detach()
