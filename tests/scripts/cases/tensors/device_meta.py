# expect error: but found at least two devices, meta and cpu!
# as PyTorch 2: 1.13 multiplies a tensor on meta by one on the CPU
def main():
    return torch.mm(torch.empty([4, 4], device="meta"), torch.ones([4, 4]))
