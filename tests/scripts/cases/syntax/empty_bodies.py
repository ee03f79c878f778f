# expect: 1
def f():
    pass
def g():
    ...
def main():
    f()
    if True:
        pass
    for i in range(2):
        pass
    "docstring in the middle"
    return 1
