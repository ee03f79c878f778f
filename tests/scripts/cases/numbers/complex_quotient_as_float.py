# expect error: expected int or float, got complex
# The division of two numbers is declared to give a float.
def quotient(a: number, b: number) -> float:
    return a / b

def main(n: int = 3) -> float:
    return quotient(complex(1.0, float(n)), 2) * 1.0
