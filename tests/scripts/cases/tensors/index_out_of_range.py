# expect error: index 5 is out of bounds for dimension 0 with size 3
def main():
    x = torch.zeros(3)
    return x[5]
