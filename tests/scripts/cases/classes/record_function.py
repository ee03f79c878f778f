# expect: tensor([3., 3.])
def main():
    x = torch.ones(2)
    with torch.autograd.profiler.record_function('abc') as r:
        y = x * 2
    with torch.autograd.profiler.record_function('abc'):
        with torch.autograd.profiler.record_function(name='inner'):
            y += 1
    return y
