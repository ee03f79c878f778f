# expect error: Boolean value of Tensor with more than one
def main():
    x = torch.ones(2)
    if x > 0:
        return 1
    return 0
