# expect error: invalid literal for int() with base 16: '0xg'
# as Python: PyTorch has no bases
def main():
    return int('0xg', 16)
