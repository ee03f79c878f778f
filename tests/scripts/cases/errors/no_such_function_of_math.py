# expect error: module 'math' has no attribute 'sqr'; did you mean 'sqrt'?
def main():
    return math.sqr(2.0)
