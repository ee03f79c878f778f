#!/usr/bin/python3
"""Compiles torchvision's models as PyTorch has them, and prints agreement, graphs, operators in graphs and times.

usage: models.py [--train] [--backend wick|eager] [--pairs N] [--threads N] [--only TEXT] [--most-parameters MILLIONS]

Each model gets its smallest legal input, with random weights, in a process of its own. It counts as captured when the results agree
(within 1e-4 of the largest one; where more is lost, as in deep networks whose normalizations see a few numbers, the compiled model may
be twice as far from the same model in double precision as the plain one) and at least 99% of the operators that plain execution runs, as PyTorch's profiler counts them,
lie in graphs. --pairs times the compiled model beside the plain one in turns, and prints the median of the ratios.
Models with more than --most-parameters are left out. The exit status is 1 if results differ.
"""

import argparse
import copy
import json
import statistics
import subprocess
import sys
import time
import warnings

# Sides of pictures that a model needs more than 64 pixels of.
SIDES = {"inception_v3": 75, "vit_": 224, "swin_": 64, "maxvit_t": 224, "mvit_": 224, "vit_h_14": 518, "s3d": 224}
VIDEOS = ("mc3_18", "r2plus1d_18", "r3d_18", "s3d", "mvit_v1_b", "mvit_v2_s", "swin3d_t", "swin3d_s", "swin3d_b")
PAIRS_OF_PICTURES = ("raft_small", "raft_large")
DETECTORS = ("rcnn", "retinanet", "ssd", "fcos")
BACKBONES = (*DETECTORS, "deeplab", "fcn_", "lraspp")
CLOSE = 1e-4
SEED = 0  # of the weights and inputs
# These share memory, and are no operators of the model.
EXCHANGE = {"aten::detach", "aten::detach_", "detach", "detach_", "aten::as_strided", "aten::_foreach_zero_", "aten::zero_", "aten::alias"}


def side_of(name):
    for prefix, side in SIDES.items():
        if name.startswith(prefix):
            return side
    return 64


def model_and_inputs(name, torch, train):
    """The model and the arguments of a call."""
    import torchvision

    options = {"weights": None}
    if any(part in name for part in BACKBONES):
        options["weights_backbone"] = None
    if name.startswith("vit_h_14"):
        options["image_size"] = 224
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = False
    model = torchvision.models.get_model(name, **options)
    batch = 2 if train else 1
    side = 224 if name.startswith(("vit_h_14", "mvit_")) else side_of(name)
    if train and name == "inception_v3":
        side = 299  # for its second classifier
    if name in VIDEOS:
        return model, (torch.randn(batch, 3, 16, side, side),)
    if name in PAIRS_OF_PICTURES:
        return model, (torch.randn(batch, 3, 128, 128), torch.randn(batch, 3, 128, 128))
    if any(part in name for part in DETECTORS):
        pictures = [torch.rand(3, 96, 96) for _ in range(batch)]
        if not train:
            return model, (pictures,)
        targets = [
            {"boxes": torch.tensor([[8.0, 8.0, 60.0, 70.0]]), "labels": torch.tensor([1]),
             "masks": torch.ones(1, 96, 96, dtype=torch.uint8), "keypoints": torch.ones(1, 17, 3)}
            for _ in range(batch)
        ]
        return model, (pictures, targets)
    return model, (torch.randn(batch, 3, side, side),)


def tensors_in(value, torch):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for key in value:
            yield from tensors_in(value[key], torch)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each, torch)


def loss_of(result, torch):
    return sum(t.float().square().mean() for t in tensors_in(result, torch) if t.requires_grad)


def operators_of(function, torch):
    """How many operators of PyTorch the program calls."""
    with torch.autograd.profiler.profile() as profile:
        function()
    events = [e for e in profile.function_events if e.name.startswith("aten::") and e.cpu_parent is None]
    return sum(e.name not in EXCHANGE for e in events)


def step(model, inputs, torch, train):
    torch.manual_seed(3)
    if not train:
        with torch.no_grad():
            return model(*inputs)
    result = model(*inputs)
    loss_of(result, torch).backward()
    return result


def difference(a, b, torch):
    """The largest difference beside the largest value; infinity for other sizes."""
    a, b = list(tensors_in(a, torch)), list(tensors_in(b, torch))
    if len(a) != len(b):
        return float("inf")
    worst = 0.0
    for x, y in zip(a, b):
        if x.shape != y.shape or x.dtype != y.dtype or x.requires_grad != y.requires_grad:
            return float("inf")
        x, y = x.detach().double(), y.detach().double()
        if x.numel() > 0:
            scale = max(1.0, x.abs().max().item())
            worst = max(worst, ((x - y).abs().max() / scale).item())
    return worst


def in_double(value, torch):
    """The inputs with floats in double precision."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, dict):
        # The model takes keypoints of single precision alone.
        return {key: each if key == "keypoints" else in_double(each, torch) for key, each in value.items()}
    return type(value)(in_double(each, torch) for each in value) if isinstance(value, (list, tuple)) else value


def errors(expected, results, torch):
    """How far each of the results is from what double precision gives."""
    return [difference(expected, in_double(list(tensors_in(each, torch)), torch), torch) for each in results]


def gradients_of(model):
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def measure(name, args):
    import torch
    import wick

    warnings.filterwarnings("ignore")
    torch.set_num_threads(args.threads)
    wick.torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    plain, inputs = model_and_inputs(name, torch, args.train)
    made = {"name": name, "parameters": sum(p.numel() for p in plain.parameters())}
    if made["parameters"] > args.most_parameters * 1e6:
        return made
    plain.train(args.train)
    model = copy.deepcopy(plain)
    compiled = wick.compile(model, backend=args.backend)
    begin = time.perf_counter()
    result = step(compiled, inputs, torch, args.train)
    made["first"] = time.perf_counter() - begin
    counters = wick.compiler.counters
    made["graphs"], made["breaks"] = counters.graph_count, counters.graph_break_count
    expected = step(plain, inputs, torch, args.train)
    made["difference"] = difference(expected, result, torch)
    if args.train:
        gradients, others = gradients_of(plain), gradients_of(model)
        made["same gradients"] = gradients.keys() == others.keys()
        made["gradients"] = max([difference(g, others[k], torch) for k, g in gradients.items() if k in others], default=0.0)
        buffers = dict(model.named_buffers())
        made["buffers"] = max([difference(b, buffers[k], torch) for k, b in plain.named_buffers()], default=0.0)
    if made["difference"] > CLOSE or made.get("buffers", 0) > CLOSE:
        torch.manual_seed(SEED)
        exact = model_and_inputs(name, torch, args.train)[0].train(args.train)
        true = step(exact.double(), in_double(inputs, torch), torch, args.train)
        made["exact"] = errors(true, (expected, result), torch)
        if args.train:
            buffers = [dict(each.named_buffers()) for each in (exact, plain, model)]
            made["exact buffers"] = errors(buffers[0], buffers[1:], torch)
    step(compiled, inputs, torch, args.train)

    def forward(of):
        with torch.set_grad_enabled(args.train):
            torch.manual_seed(3)
            of(*inputs)

    operators = operators_of(lambda: forward(plain), torch)
    left = operators_of(lambda: forward(compiled), torch) if args.backend == "wick" else 0
    made["operators"], made["left"] = operators, left
    ratios, times = [], []
    for _ in range(args.pairs):
        pair = []
        for each in (plain, compiled):
            begin = time.perf_counter()
            step(each, inputs, torch, args.train)
            pair.append(time.perf_counter() - begin)
        ratios.append(pair[1] / pair[0])
        times.append(pair[0])
    if ratios:
        made["ratio"], made["plain"] = statistics.median(ratios), statistics.median(times)
    return made


def agrees_with_plain(m):
    """Whether a model's results and buffers are those of the plain one."""

    def close(between, to_exact):
        if m.get(between, 0) <= CLOSE:
            return True
        plain, compiled = m.get(to_exact, (0, float("inf")))
        return compiled <= 2 * plain

    return m.get("same gradients", True) and close("difference", "exact") and close("buffers", "exact buffers")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--backend", default="wick")
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--most-parameters", type=float, default=1000)
    parser.add_argument("--model", help="measures one model in this process, and prints a line of JSON")
    args = parser.parse_args()
    if args.model:
        print(json.dumps(measure(args.model, args)))
        return 0
    import torchvision

    names = [name for name in torchvision.models.list_models() if not name.startswith("quantized_") and args.only in name]
    total = captured = whole = wrong = 0
    ratios = []
    for name in names:
        total += 1
        run = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--model", name], capture_output=True, text=True)
        lines = run.stdout.splitlines()
        if run.returncode != 0 or not lines:
            print(f"{name:40} FAILED ({run.returncode}): {(run.stderr.strip().splitlines() or ['?'])[-1][:160]}", flush=True)
            wrong += 1
            continue
        m = json.loads(lines[-1])
        if "graphs" not in m:
            total -= 1
            continue
        agrees = agrees_with_plain(m)
        wrong += not agrees
        is_captured = agrees and m["left"] <= 0.01 * m["operators"]
        captured += is_captured
        whole += is_captured and m["graphs"] == 1 and m["breaks"] == 0
        line = f"{name:40} {m['graphs']:3} graphs {m['breaks']:3} breaks {m['left']:5} of {m['operators']:5} operators left, "
        line += f"difference {m['difference']:.1e}"
        if "exact" in m:
            line += " (from double precision: plain {:.1e}, compiled {:.1e})".format(*m["exact"])
        line += f", first call {m['first']:.2f} s"
        if args.train:
            line += f", gradients {m['gradients']:.1e}, buffers {m['buffers']:.1e}"
        if "ratio" in m:
            ratios.append(m["ratio"])
            line += f", {m['ratio']:.3f} of {1000 * m['plain']:.1f} ms"
        print(line + ("" if agrees else "  DIFFERS"), flush=True)
    print(f"{total} models, {captured} captured, {whole} of these in one graph, {wrong} wrong")
    if ratios:
        print(f"ratios: median {statistics.median(ratios):.3f}, geometric mean {statistics.geometric_mean(ratios):.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
