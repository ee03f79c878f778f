# expect: (True, False, 0, 0.0, 1, tensor([[1., 1.],
# expect:         [1., 1.]]))
def main():
    x = torch.zeros(2, 2)
    with torch.autograd.profiler.record_function("part"):
        y = x + 1
    return x.is_leaf, x.retains_grad, x.output_nr(), x.data.sum().item(), torch._debug_has_internal_overlap(x[0].expand(3, 2)), y
