# expect error: undefined value set: Python's 'set' is not in TorchScript
def main():
    return len(set([1, 2, 1]))
