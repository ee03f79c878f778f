"""Lets PyTorch's optimizers go on from states that Wick wrote: interop.py IN OUT.

IN holds a list of {"rule", "double", "start", "gradients", "state"}; OUT gets the parameters after one more step
for each gradient, and the optimizer's state then.
"""
import sys

import torch

results = []
for case in torch.load(sys.argv[1]):
    dtype = torch.float64 if case["double"] else torch.float32
    parameters = [torch.nn.Parameter(t.clone()) for t in case["start"]]
    optimizer = getattr(torch.optim, case["rule"])(parameters, lr=1.0)
    optimizer.load_state_dict(case["state"])
    for gradients in case["gradients"]:
        for p, g in zip(parameters, gradients):
            p.grad = g.to(dtype)
        optimizer.step()
    results.append({"parameters": [p.detach() for p in parameters], "state": optimizer.state_dict()})
torch.save(results, sys.argv[2])
print(len(results), "cases")
