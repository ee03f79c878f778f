"""Trains exported programs and saves them as TorchScript.

Results and states of programs that were saved as .pt are those that PyTorch recorded; gradients are those of the saved copy, and in float64 those of
finite differences.
"""
import os
import sys
import tarfile
import tempfile

import wick
from wick import torch
import exported_test

HERE = os.path.dirname(os.path.abspath(__file__))
# Programs with parameters, and those among them whose gradients are compared with finite differences.
TRAINED = ("convolutions.training", "convolutions.decomposed", "recurrent.training", "recurrent.decomposed", "transformer.training", "transformer.decomposed", "batch_norm_trains.training", "while_loop_with_weights.training",
           "conditions_with_weights.training", "shared_weights.training", "checkpoints.decomposed", "both_passes")
IN_FLOAT64 = ("convolutions.training", "batch_norm_trains.training", "transformer.training", "conditions_with_weights.training")
# One in so many programs of single operators is saved.
SHARE = 8
STEP = 1e-6


def load(path):
    return wick.jit.load(path)


def total(value):
    """The sum of the squares in the floating tensors of a result: many layers give numbers whose plain sum is always the same."""
    if isinstance(value, torch.Tensor):
        return (value * value).sum() if value.is_floating_point() else None
    parts = [total(part) for part in (value.values() if isinstance(value, dict) else value)] if isinstance(value, (dict, list, tuple)) else []
    parts = [part for part in parts if part is not None]
    return sum(parts[1:], parts[0]) if parts else None


def converted(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(converted(part, dtype) for part in value)
    return {key: converted(part, dtype) for key, part in value.items()} if isinstance(value, dict) else value


def gradients(module, call):
    """Gradients of the sum of results by the names of parameters."""
    for parameter in module.parameters():
        parameter.grad = None
    total(module.forward(*call["args"], **call["kwargs"])).backward()
    return {name: parameter.grad for name, parameter in module.named_parameters() if parameter.grad is not None}


def check_gradients(folder):
    call = torch.load(os.path.join(folder, "io.pt"))["calls"][0]
    path = os.path.join(folder, "module.pt2")
    saved = os.path.join(folder, "module.pt")
    load(path).save(saved)
    found, copy = gradients(load(path), call), gradients(load(saved), call)
    if not found:
        return "no parameter has a gradient"
    if not any(bool((gradient != 0).any()) for gradient in found.values()):
        return "all gradients are zero"
    return exported_test.difference(found, copy, 0.0, "gradients")


def check_differences(folder):
    """Compares three elements of each parameter's gradient with finite differences."""
    call = torch.load(os.path.join(folder, "io.pt"))["calls"][0]
    call = {"args": converted(call["args"], torch.float64), "kwargs": converted(call["kwargs"], torch.float64)}
    module = load(os.path.join(folder, "module.pt2")).to(torch.float64)
    state = {name: value.detach().clone() for name, value in module.state_dict().items()}
    found = gradients(module, call)

    def value():
        with torch.no_grad():
            return total(module.forward(*call["args"], **call["kwargs"])).item()
    for name, parameter in module.named_parameters():
        if name not in found:
            continue
        flat = parameter.detach().reshape(-1)
        for i in sorted({0, flat.numel() // 2, flat.numel() - 1}):
            results = []
            for step in (STEP, -STEP):
                module.load_state_dict(state)
                with torch.no_grad():
                    parameter.view(-1)[i] += step
                results.append(value())
            module.load_state_dict(state)
            want = (results[0] - results[1]) / (2 * STEP)
            got = found[name].reshape(-1)[i].item()
            if abs(got - want) > 1e-4 * (1 + abs(want)):
                return f"the gradient of {name}[{i}] is {got}, differences give {want}"
    return None


def check_saved(folder):
    """Runs the program as a .pt; extra files belong to the package."""
    saved = os.path.join(folder, "module.pt")
    content = torch.load(os.path.join(folder, "io.pt"))
    load(os.path.join(folder, "module.pt2")).save(saved, _extra_files=content.get("extra", {}))
    return exported_test.check(folder, saved)


def main():
    match = sys.argv[1] if len(sys.argv) > 1 else ""
    counts = {"passed": 0, "refused": 0, "failed": 0}
    with tempfile.TemporaryDirectory() as root, tarfile.open(os.path.join(HERE, "kit.tar.xz")) as kit:
        kit.extractall(root)
        names = sorted(name for name in os.listdir(root) if name not in exported_test.OLDER)
        saved = [name for name in names if not name.startswith("op_")] + [name for name in names if name.startswith("op_")][::SHARE]
        for function, chosen in ((check_gradients, TRAINED), (check_differences, IN_FLOAT64), (check_saved, saved)):
            for name in chosen:
                if match not in name:
                    continue
                try:
                    why = function(os.path.join(root, name))
                except Exception as error:
                    why = f"{type(error).__name__}: {error}"
                    if function is check_saved and any(reason in why for reason in exported_test.REFUSED):
                        counts["refused"] += 1
                        continue
                counts["failed" if why else "passed"] += 1
                if why:
                    print(f"{function.__name__} of {name}: {' '.join(why.split())[-300:]}", flush=True)
    print(f"{counts['passed']} passed, {counts['refused']} refused, {counts['failed']} failed")
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
