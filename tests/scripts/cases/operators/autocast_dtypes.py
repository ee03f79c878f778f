# expect: [6, 6, 6, 6, 6, 15, 15, 15, 6, 6, 6, 6, 15]
from typing import List

def dtypes(x, w) -> List[int]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.mm(x, w)
        z = [y.sum(), y.prod(), torch.cumsum(y, 0), torch.cumprod(y, 0), torch.log_softmax(y, 1), torch.softmax(y, 1)]
        z += [y.sum(dtype=torch.bfloat16), torch.log_softmax(y, 1, dtype=torch.bfloat16)]
        z += [torch.chain_matmul(x, w), torch.cat([y, x]), torch.exp(y), y + x, torch.relu(y)]
    return [int(t.dtype) for t in z]

def main():
    return dtypes(torch.eye(2), torch.eye(2))
