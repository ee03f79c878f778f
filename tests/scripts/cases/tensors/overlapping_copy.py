# expect error: some elements of the input tensor and the written-to tensor refer to a single memory location
def main():
    u = torch.arange(6.0)
    u[1:] = u[:-1]
    return u
