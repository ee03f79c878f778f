# expect: (False, True, 2)
def loud(out: List[int], value: bool) -> bool:
    out.append(1)
    return value

def main():
    out: List[int] = []
    a = loud(out, False) and loud(out, True)
    b = loud(out, True) or loud(out, True)
    return a, b, len(out)
