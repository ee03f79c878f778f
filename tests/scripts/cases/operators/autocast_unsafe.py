# expect error: nsafe
def main():
    x = torch.ones(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.nn.functional.binary_cross_entropy(x, x)
