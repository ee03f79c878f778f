# expect error: indent
def main():
    x = 1
      y = 2
    return x
