# expect: 1
def main():
    x = torch.ones(1)
    assert x > 0
    assert x.sum()
    assert len([1])
    assert 1.5
    return 1
