# expect: ([[1, 2], [30, 4], [5, 6], [7]], 55, 2)
def main():
    grid = [[1, 2], [3, 4], [5, 6]]
    grid[1][0] = 30
    grid.append([7])
    total = 0
    for row in grid:
        for value in row:
            total += value
    return grid, total, len(grid[0])
