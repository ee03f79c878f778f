# expect error: Empty lists default to List[Tensor]. Annotate the variable
def main():
    x = []
    x.append(1)
    return x
