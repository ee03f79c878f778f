# expect: 1
def main():
    if torch.jit.is_scripting():
        return 1
    else:
        return undefined_name(4)
