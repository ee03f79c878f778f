# expect error: stft: expected hop_length > 0, but got hop_length=0
def main():
    return torch.stft(torch.ones([16]).requires_grad_(), 4, 0, return_complex=True)
