# expect error: indexing must be one of "xy" or "ij", but received: yx
def main():
    return torch.meshgrid([torch.ones([3]).requires_grad_()], indexing="yx")
