# expect: 14
def square(x: int) -> int:
    return x * x

def main():
    futures: List[Future[int]] = []
    for i in range(4):
        futures.append(torch.jit.fork(square, i))
    total = 0
    for f in futures:
        total += torch.jit.wait(f)
    return total
