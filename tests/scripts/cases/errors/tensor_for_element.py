# expect error: _set_item
def main():
    x = [1]
    x[0] = torch.tensor(3)
    return x
