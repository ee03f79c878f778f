# expect error: index 5 out of range for tensor of size [3] at dimension 0
def main():
    x = torch.zeros(3)
    return x[5]
