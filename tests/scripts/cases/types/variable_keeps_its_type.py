# expect error: previously
def main():
    x = 1
    if x > 0:
        x = 'text'
    return x
