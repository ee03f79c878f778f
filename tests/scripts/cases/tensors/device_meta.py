# expect error: but found at least two devices, meta and cpu!
def main():
    return torch.mm(torch.empty([4, 4], device="meta"), torch.ones([4, 4]))
