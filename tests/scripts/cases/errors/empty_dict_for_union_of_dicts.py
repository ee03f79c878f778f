# expect error: there are multiple possible Dict type candidates in the Union annotation
def main():
    x: Union[Dict[str, int], Dict[str, Tensor]] = {}
    return x
