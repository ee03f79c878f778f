# expect: ((tensor(5.+0.j), tensor([5.+0.j], dtype=torch.complex128)), (tensor(49154.), tensor([[4., 4.],
# expect:         [4., 4.]]), tensor([[[4., 4.],
# expect:          [4., 4.]]])), tensor([[[1.5000+1.2500j]]]), (tensor([0, 0, 0, 0]), tensor(0)), tensor([ 1.0078e+00, -9.1835e-41,  3.3895e+38, -9.9609e-01],
# expect:        dtype=torch.bfloat16), 6, tensor([nan+infj]), tensor([[7., 7.],
# expect:         [1., 1.]]), (tensor([2, 5]), tensor([1, 1, 0]), tensor([1, 2])), tensor([4, 0, 7]), tensor([0., 2., 0., 1.], dtype=torch.bfloat16), tensor([0., 1.]), (tensor([-0.6931, -0.3133, -2.1269]), tensor([1.0000, 0.3679, 0.1353])), tensor([]))
def main():
    real = torch.tensor([3.0, 4.0])
    norms = torch.norm(real, None, dtype=torch.complex64), torch.norm(real, 2, [0], True, dtype=torch.complex128)
    x = torch.tensor([0.0, 1.0, -2.0])
    ends = torch.tensor([1, 2, 32767], dtype=torch.int16)
    areas = torch.trapezoid(ends, dx=1), torch.trapezoid(torch.ones(2, 2), torch.arange(8.0).view(2, 2, 2), dim=0), torch.cumulative_trapezoid(torch.ones(2, 2), torch.arange(8.0).view(2, 2, 2), dim=0)
    z = torch.complex(torch.tensor([[[1.0, 2.0, 3.0, 0.0]]]), torch.tensor([[[1.0, 0.0, 0.0, 4.0]]]))
    pooled = torch.adaptive_avg_pool1d(z, [1])
    first = torch.argmax(z.view(4, 1), 1), torch.argmin(torch.tensor([True]), 0)
    halves = torch.tensor([1.0, 0.0, float("inf"), -1.0]).to(torch.bfloat16)
    steps = torch.nextafter(halves, torch.tensor([2.0, -1.0, 0.0, 0.0]).to(torch.bfloat16))
    drawn = torch.normal(torch.zeros(2), torch.ones(2, dtype=torch.float64)).dtype
    infinite = torch.complex(torch.tensor([2.0]), torch.tensor([3.0])) + torch.complex(torch.tensor([1.0]), torch.tensor([float("inf")]))
    mask = torch.tensor([True, False])
    target = torch.ones(2, 2)
    target[mask] = torch.tensor(7)
    counted = torch._unique2(torch.tensor([5, 5, 2]), True, False, True)
    hinge = torch.hinge_embedding_loss(torch.tensor([4, 6, 7]), torch.tensor([1, -1, 2]), 1.0, 0)
    hist = torch.histc(torch.tensor([1.0, 1.0, 3.0]).to(torch.bfloat16), 4, 0, 4)
    gamma = torch.igamma(torch.tensor([float("inf"), float("nan")]), torch.tensor([float("nan"), float("inf")]))
    buffer = torch.ops.aten.log_sigmoid_forward(x)
    return norms, areas, pooled, first, steps, drawn, infinite, target, counted, hinge, hist, gamma, buffer, torch.fft.fftfreq(0)
