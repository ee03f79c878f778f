# expect: (21, tensor([12.]))
def main():
    x = torch.tensor([3.0])
    out = 0
    if x > 2:
        out += 1
    while x < 10:
        x = x * 2
        out += 10
    return out, x
