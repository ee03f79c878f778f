# expect error: undefined value nothing_like_this
def main():
    return nothing_like_this(3)
