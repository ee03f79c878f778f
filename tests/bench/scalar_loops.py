#!/usr/bin/env python3
"""Scalar loops in PyTorch's interpreter and in Wick's, in turns (needs python3-torch).

    bazel build -c opt //tests/bench:interpreter_bench
    tests/bench/scalar_loops.py

Times are the least of several runs, in milliseconds of processor time.
"""
import re
import subprocess
import sys
import time

import torch

PROGRAMS = '''
def fib(n: int) -> int:
    a = 0
    b = 1
    for i in range(n):
        a, b = b, (a + b) % 1000000007
    return a

def collatz(n: int) -> int:
    best = 0
    for i in range(1, n):
        x = i
        steps = 0
        while x != 1:
            if x % 2 == 0:
                x = x // 2
            else:
                x = x * 3 + 1
            steps += 1
        if steps > best:
            best = steps
    return best

def mandelbrot(n: int) -> int:
    count = 0
    for py in range(n):
        for px in range(n):
            x0 = float(px) / float(n) * 3.5 - 2.5
            y0 = float(py) / float(n) * 2.0 - 1.0
            x = 0.0
            y = 0.0
            i = 0
            while x * x + y * y <= 4.0 and i < 100:
                x, y = x * x - y * y + x0, 2.0 * x * y + y0
                i += 1
            count += i
    return count
'''
ARGUMENTS = {"fib": 1000000, "collatz": 20000, "mandelbrot": 64}
ROUNDS = 3


def torch_ms(unit, name):
    function = getattr(unit, name)
    function(ARGUMENTS[name] // 10)
    function(ARGUMENTS[name] // 10)
    start = time.thread_time()
    result = function(ARGUMENTS[name])
    return (time.thread_time() - start) * 1e3, result


def wick_lines(binary):
    text = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    pattern = r"(\w+)\((\d+)\) = (\d+): interpreter ([\d.]+) ms.*compiled ([\d.]+) ms, C ([\d.]+) ms"
    return {m[1]: m for m in re.finditer(pattern, text)}


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "bazel-bin/tests/bench/interpreter_bench"
    torch.set_num_threads(1)
    unit = torch.jit.CompilationUnit(PROGRAMS)
    best = {name: [float("inf")] * 4 for name in ARGUMENTS}
    for _ in range(ROUNDS):
        lines = wick_lines(binary)
        for name, argument in ARGUMENTS.items():
            ms, result = torch_ms(unit, name)
            line = lines[name]
            assert int(line[2]) == argument and int(line[3]) == result, (name, result, line[0])
            times = [ms] + [float(line[i]) for i in (4, 5, 6)]
            best[name] = [min(a, b) for a, b in zip(best[name], times)]
    print(f"{'':12}{'PyTorch':>9}{'Wick':>9}{'faster':>9}{'compiled':>10}{'C -O2':>8}{'ratio':>7}")
    for name, (torch_best, wick, compiled, c) in best.items():
        print(f"{name:12}{torch_best:9.1f}{wick:9.2f}{torch_best / wick:8.1f}x"
              f"{compiled:10.2f}{c:8.2f}{compiled / c:7.2f}")


if __name__ == "__main__":
    main()
