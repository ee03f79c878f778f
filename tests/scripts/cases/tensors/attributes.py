# expect: (True, 2, device(type='cpu'), False, [3, 2], False, True, [3, 1], True, False)
def main():
    x = torch.zeros(2, 3, dtype=torch.float64)
    return x.dtype == torch.float64, x.ndim, x.device, x.is_cuda, x.T.shape, x.requires_grad, x.is_floating_point(), x.stride(), x.is_contiguous(), x.t().is_contiguous()
