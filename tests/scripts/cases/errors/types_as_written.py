# expect error: no overload of aten::add takes (Optional[int], List[str])
def main(x: Optional[int] = 3):
    return x + ['a']
