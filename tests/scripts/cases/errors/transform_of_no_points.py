# expect error: Invalid number of data points (-1) specified
def main():
    return torch.fft.fft(torch.ones([3]).requires_grad_(), -1)
