# expect error: replacement index 1 is out of range
# as Python: PyTorch's format knows only {}
def main():
    return '{0} {1}'.format(1)
