# expect: [tensor([4.]), tensor([1., 1., 1., 1.]), tensor([0., 2., 1., 1.]), tensor([4.]), tensor([1., 1., 2.])]
def main():
    x = torch.tensor([1.0, math.nan, 2.0, 0.5])
    counts = [torch.histc(x, bins=bins, min=0, max=2) for bins in [1, 4]]
    counts.append(torch.histogram(x, bins=4, range=[0.0, 2.0])[0])
    counts.append(torch.histogram(x, bins=1, range=[0.0, 2.0])[0])
    counts.append(torch.histogram(x, bins=torch.tensor([0.0, 1.0, 2.0, 3.0]))[0])
    return counts
