# expect error: no_such_method
def main():
    return torch.ones(2).no_such_method()
