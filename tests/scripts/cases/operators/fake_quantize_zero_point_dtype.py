# expect error: Zero-point must be Int32, Float or Half, found
def main():
    return torch.fake_quantize_per_channel_affine(torch.ones([2, 2]), torch.ones([2]), torch.zeros([2], dtype=torch.long), 0, -8, 7)
