# expect error: function cannot be used as a value
def helper(x: int) -> int:
    return x
def main():
    return [helper]
