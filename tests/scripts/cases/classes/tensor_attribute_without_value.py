# expect error: object has no value for its attribute 'weight' yet
class Layer:
    weight: torch.Tensor
    early: torch.Tensor

    def __init__(self, x: torch.Tensor):
        self.early = self.weight + x
        self.weight = x


def main():
    return Layer(torch.ones(2)).early
