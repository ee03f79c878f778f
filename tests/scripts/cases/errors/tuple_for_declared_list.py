# expect error: Variable 'x' is annotated with type List[int] but is being assigned to a value of type Tuple[int, int]
def main():
    x: List[int] = (1, 2)
    return x
