# expect: (1, 0)
class S(Enum):
    A = 1
    B = 2
def f(s: Any) -> int:
    if isinstance(s, S):
        return s.value
    return 0
def main():
    return f(S.A), f(3)
