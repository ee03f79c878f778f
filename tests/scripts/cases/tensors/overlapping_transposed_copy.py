# expect error: some elements of the input tensor and the written-to tensor refer to a single memory location
def main():
    u = torch.ones([2, 2])
    u.copy_(u.t())
    return u
