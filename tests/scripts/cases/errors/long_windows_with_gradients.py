# expect error: istft: expected 0 < win_length <= n_fft, but got win_length=9
def main():
    x = torch.ones([3, 5], dtype=torch.complex64).requires_grad_()
    return torch.istft(x, 4, win_length=9)
