# expect error: unsupported reduction given
def main():
    x = torch.ones([3]).requires_grad_()
    return torch.segment_reduce(x, "median", lengths=torch.tensor([3]), axis=0)
