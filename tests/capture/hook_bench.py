"""Times of Python calls with and without the frame hook, in nanoseconds a call.

usage: hook_bench.py [ROUNDS]     (with frame_hook_module.so and foreign_hook.so on the path)

Prints the least time of all rounds, which other programs disturb least, and the difference to calls without a hook. In each
round all kinds run once, in turn.
"""

import sys
import time

import foreign_hook as foreign
import frame_hook_module as hook

CALLS = 50_000


def leaf():
    pass


def skipped():
    pass


def loop(function):
    start = time.perf_counter()
    for _ in range(CALLS):
        function()
    return (time.perf_counter() - start) / CALLS * 1e9


def scopes(function, *args):
    start = time.perf_counter()
    for _ in range(CALLS // 10):
        function(*args)
    return (time.perf_counter() - start) / (CALLS // 10) * 1e9


def foreign_loop(function):
    foreign.install()
    try:
        return loop(function)
    finally:
        foreign.remove()


KINDS = {
    "no hook": lambda: loop(leaf),
    "scope, callback in C++ answers: plain": lambda: hook.run_by("plain", loop, leaf),
    "scope, code is skipped": lambda: hook.run_by("plain", loop, skipped),
    "scope, paused": lambda: hook.run_by("plain", hook.run_paused, loop, leaf),
    "another hook alone": lambda: foreign_loop(leaf),
    "a scope around each call of dict()": lambda: scopes(hook.run_by, "plain", dict),
    "the same without a scope": lambda: scopes(hook.run_paused, dict),
}


def main():
    hook.skip(skipped.__code__, True)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    times = {name: [] for name in KINDS}
    for _ in range(rounds):
        for name, run in KINDS.items():
            times[name].append(run())
    plain = min(times["no hook"])
    for name, found in times.items():
        print(f"{min(found):8.1f} {min(found) - plain:+8.1f}  {name}")


if __name__ == "__main__":
    main()
