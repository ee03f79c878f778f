# expect error: Failure: too large
class Failure(Exception):
    """An error of this program."""

def main():
    raise Failure('too large')
    return 1
