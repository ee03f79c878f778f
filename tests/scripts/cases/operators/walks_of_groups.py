# expect: ([tensor([ 0.8776,  0.5403, -0.4161])], [tensor([-0.4794,  0.8415, -0.9093])], ([tensor([0.2350, 0.1966, 0.1050])], [tensor([1.6487, 0.3679, 7.3891])]), ([tensor([0.8399, 0.1413, 0.0027])], [tensor([2., 0., 2.])]), ([tensor([[ 0.5000, -1.0000,  2.0000],
# expect:         [ 0.5000, -1.0000,  2.0000]])], [tensor([ 0.2182, -0.4364,  0.8729])]), ([tensor([ 1.4174,  0.2329, -1.0331])], [tensor([ 0.7032,  0.2856, -0.1999])]), ([tensor([[0.1155, 0.0706, 0.4200],
# expect:         [0.2749, 0.9987, 0.4200]])], [tensor([[ 5.2909e+00, -4.5663e-03,  2.7183e+00],
# expect:         [ 1.0582e+01,  4.5663e-03,  2.7183e+00]])]), ([tensor([ 0.8776,  0.5403, -0.4161])], [tensor([ 0.8776,  0.5403, -0.4161])]), [tensor([ 1., -2.,  4.])])
def main():
    x = torch.tensor([0.5, -1.0, 2.0]).requires_grad_()
    w = torch.tensor([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0]]).requires_grad_()
    # Operators of one tensor have gradients of their own, each walked once.
    first = torch.autograd.grad([torch.sin(x).sum()], [x])
    second = torch.autograd.grad([torch.cos(x).sum()], [x])
    # Results that are there before either walk.
    up, down = torch.exp(x), torch.sigmoid(x)
    third = torch.autograd.grad([down.sum()], [x]), torch.autograd.grad([up.sum()], [x])
    # What both go through keeps nothing.
    twice = x * 2.0
    near, far = torch.tanh(twice), torch.relu(twice)
    fourth = torch.autograd.grad([near.sum()], [x]), torch.autograd.grad([far.sum()], [x])
    # With products and reductions.
    scores, sizes = torch.mv(w, x), torch.linalg.vector_norm(x)
    fifth = torch.autograd.grad([scores.sum()], [w]), torch.autograd.grad([sizes], [x])
    # What is retained serves again.
    shared = torch.sin(x)
    one, two = torch.exp(shared), torch.tanh(shared)
    sixth = torch.autograd.grad([one.sum()], [x], None, True), torch.autograd.grad([two.sum()], [x])
    # What a loop carries.
    h, g = torch.zeros(3), torch.ones(3)
    for i in range(w.size(0)):
        h = torch.tanh(h + w[i])
        g = torch.exp(g * w[i])
    seventh = torch.autograd.grad([h.sum()], [w]), torch.autograd.grad([g.sum()], [w])
    # Equal results, each walked from.
    eighth = torch.autograd.grad([torch.sin(x).sum()], [x]), torch.autograd.grad([torch.sin(x).sum()], [x])
    (x * x).sum().backward()
    ninth = torch.autograd.grad([(x * x).sum()], [x])
    return first, second, third, fourth, fifth, sixth, seventh, eighth, ninth
