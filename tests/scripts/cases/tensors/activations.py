# expect: (tensor([0., 0., 2.]), tensor([0.2689, 0.5000, 0.8808]), tensor([-0.7616,  0.0000,  0.9640]), tensor([0.0420, 0.1142, 0.8438]), tensor([-0.1587,  0.0000,  1.9545]), tensor([-0.5000,  0.0000,  1.0000]), tensor([1., 0., 2.]), tensor([-10.,   0.,   2.]))
def main():
    x = torch.tensor([-1.0, 0.0, 2.0])
    return torch.relu(x), torch.sigmoid(x), torch.tanh(x), torch.softmax(x, 0), torch.nn.functional.gelu(x), x.clamp(-0.5, 1.0), x.abs(), torch.where(x > 0, x, x * 10)
