# expect error: reached 3
def main():
    total = 0
    for i in range(10):
        if i == 3:
            raise Exception('reached ' + str(i))
        total += i
    return total
