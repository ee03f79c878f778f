# expect: (6, 3, 6, 6, 11, 4, 6)
def main():
    i = torch.ones(2, dtype=torch.int32)
    f = torch.ones(2)
    h = torch.ones(2, dtype=torch.float16)
    b = torch.tensor([True, False])
    return (i + f).dtype, (i + 1).dtype, (i + 1.5).dtype, (h + f).dtype, (b + b).dtype, (b + 1).dtype, (i / 2).dtype
