# expect: tensor([2., 2.])
def f(x):
    return x + 1

def main():
    return f(torch.ones(2))
