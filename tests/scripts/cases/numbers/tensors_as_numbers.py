# expect: (tensor(3.), 6, 6, 1.5849625007211563, 1.892789260714372, (0.32847957890441376-0.4696602443758603j), 3.0)
# Of several overloads the first one that takes the tensor as a number is chosen.
def main():
    three = torch.tensor([3, 8]).select(0, 0)
    whole = torch.tensor(three)
    flag = torch.tensor(torch.ones([2], dtype=torch.bool).all())
    return whole, whole.dtype, flag.dtype, math.log(three, 2.0), math.log(8.0, three), math.log(three, 3j), math.log(torch.tensor(8), 2)
