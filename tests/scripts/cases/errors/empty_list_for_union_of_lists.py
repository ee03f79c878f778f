# expect error: there are multiple possible List type candidates in the Union annotation
def main():
    x: Union[List[str], List[Tensor]] = []
    return x
