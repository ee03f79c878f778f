# expect: [0.27205002307891846, 0.7395084500312805, 16]
def main():
    x = torch.cat([torch.tensor([88.8]), torch.linspace(0.0, 1.0, 15)])
    p = torch.softmax(x, 0)
    return [float(p[1] * 1e38), float(p[15] * 1e38), int((p > 0).sum())]
