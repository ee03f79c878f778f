# expect: (tensor(0.7641), tensor(-0.8257))
# Only the first input's dimensions are checked.
def main():
    x = torch.arange(5).float()
    y = torch.arange(10).reshape(2, 5).float() - 4
    return torch.cosine_embedding_loss(x, y, torch.ones([])), torch.cosine_embedding_loss(x, torch.ones([]), torch.ones([]))
