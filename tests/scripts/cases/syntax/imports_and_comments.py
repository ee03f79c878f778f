# expect: ([1, 3, 4], 1, 2)
import torch
import math
from typing import List, Dict  # of types

# A comment between functions.

def main():
    """A docstring."""
    x = 1  # behind a line

    # with a blank line above
    y = (x +
         2)
    z = x + \
        y
    if z: pass
    a = 1; b = 2
    return [
        x,
        y,  # inside of brackets
        z,
    ], a, b
