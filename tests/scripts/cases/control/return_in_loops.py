# expect: ((1, 2), (-1, -1), 64)
def find(xs: List[List[int]], wanted: int) -> Tuple[int, int]:
    for i in range(len(xs)):
        for j in range(len(xs[i])):
            if xs[i][j] == wanted:
                return i, j
    return -1, -1

def first_square_above(n: int) -> int:
    k = 0
    while True:
        if k * k > n:
            return k * k
        k += 1
    return -1

def main():
    grid = [[1, 2], [3, 4, 5], [6]]
    return find(grid, 5), find(grid, 9), first_square_above(50)
