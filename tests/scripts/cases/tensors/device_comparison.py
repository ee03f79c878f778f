# expect: (False, False, True, False, device(type='cpu'), False, True)
def main():
    x = torch.zeros([1], device="cpu:0")
    y = x.to("cpu:0")
    return (torch.device("cpu") == torch.device("cpu:0"), torch.device("cuda") == torch.device("cuda:0"), x.device == torch.device("cpu"),
            x.device == torch.device("cpu:0"), y.device, y is x, x.to("cpu") is x)
