# expect error: Argument dim not provided; keyword argument dims unknown; did you mean 'dim'?
def main():
    return torch.sum(torch.ones(2), dims=[0])
