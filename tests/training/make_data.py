#!/usr/bin/python3
"""Writes the files in data/ with PyTorch 1.13: run it from its folder after changing it."""
import torch
import torch.optim.lr_scheduler as schedulers

torch.manual_seed(0)
SHAPES = [(9, 5), (13,), (2, 3, 2, 2)]
STEPS = 12
SNAPSHOTS = (1, 2, 5, 12)
MORE = 3  # steps after the state was saved

start = [torch.randn(s, dtype=torch.float64) for s in SHAPES]
gradients = [[torch.randn(s, dtype=torch.float64) for s in SHAPES] for _ in range(STEPS + MORE)]

CASES = [
    ("SGD", dict(lr=0.1)),
    ("SGD", dict(lr=0.1, weight_decay=0.01)),
    ("SGD", dict(lr=0.05, momentum=0.9)),
    ("SGD", dict(lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.02)),
    ("SGD", dict(lr=0.05, momentum=0.9, nesterov=True)),
    ("SGD", dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1, maximize=True)),
    ("Adam", dict()),
    ("Adam", dict(lr=0.02, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.03)),
    ("Adam", dict(lr=0.02, amsgrad=True)),
    ("Adam", dict(lr=0.02, amsgrad=True, weight_decay=0.1, maximize=True)),
    ("AdamW", dict()),
    ("AdamW", dict(lr=0.05, betas=(0.7, 0.9), weight_decay=0.2)),
    ("AdamW", dict(lr=0.05, amsgrad=True, maximize=True)),
    ("RMSprop", dict()),
    ("RMSprop", dict(lr=0.03, alpha=0.9, weight_decay=0.1)),
    ("RMSprop", dict(lr=0.03, momentum=0.8)),
    ("RMSprop", dict(lr=0.03, centered=True)),
    ("RMSprop", dict(lr=0.03, centered=True, momentum=0.7, weight_decay=0.05, maximize=True)),
    ("Adagrad", dict()),
    ("Adagrad", dict(lr=0.1, lr_decay=0.05, weight_decay=0.1)),
    ("Adagrad", dict(lr=0.1, initial_accumulator_value=0.3, eps=1e-6, maximize=True)),
]


def flat(parameters):
    return torch.cat([p.detach().reshape(-1) for p in parameters])


def optimizer_case(rule, settings, dtype):
    parameters = [torch.nn.Parameter(t.clone().to(dtype)) for t in start]
    parameters[2] = torch.nn.Parameter(start[2].clone().to(dtype).contiguous(memory_format=torch.channels_last))
    optimizer = getattr(torch.optim, rule)(parameters, **settings)
    after, state = [], None
    for step in range(STEPS + MORE):
        for p, g in zip(parameters, gradients[step]):
            p.grad = g.to(dtype)
        optimizer.step()
        if step + 1 in SNAPSHOTS:
            after.append(flat(parameters))
        if step + 1 == STEPS:
            saved = optimizer.state_dict()
            state = {"state": {k: {n: v.clone() if torch.is_tensor(v) else v for n, v in s.items()}
                               for k, s in saved["state"].items()}, "param_groups": saved["param_groups"]}
    return {"rule": rule, "settings": settings, "double": dtype is torch.float64, "after": torch.stack(after),
            "state": state, "resumed": flat(parameters)}


torch.save({"start": start, "gradients": gradients, "snapshots": list(SNAPSHOTS),
            "cases": [optimizer_case(r, s, d) for r, s in CASES for d in (torch.float32, torch.float64)]},
           "data/optimizers.pt")

SCHEDULES = [
    ("StepLR", dict(step_size=3, gamma=0.5)),
    ("MultiStepLR", dict(milestones=[2, 5, 5, 9], gamma=0.3)),
    ("ExponentialLR", dict(gamma=0.9)),
    ("CosineAnnealingLR", dict(T_max=5, eta_min=0.01)),
    ("CosineAnnealingLR", dict(T_max=20)),
    ("LinearLR", dict()),
    ("LinearLR", dict(start_factor=0.1, end_factor=0.8, total_iters=7)),
    ("ConstantLR", dict(factor=0.25, total_iters=4)),
    ("PolynomialLR", dict(total_iters=8, power=2.0)),
    ("OneCycleLR", dict(max_lr=0.4, total_steps=16)),
    ("OneCycleLR", dict(max_lr=0.4, total_steps=16, pct_start=0.25, anneal_strategy="linear", three_phase=True)),
    ("Chained", [("LinearLR", dict()), ("StepLR", dict(step_size=4, gamma=0.5)), ("ExponentialLR", dict(gamma=0.95))]),
    ("Sequential", [("LinearLR", dict(start_factor=0.2, total_iters=4)), ("CosineAnnealingLR", dict(T_max=8)),
                    ("ExponentialLR", dict(gamma=0.9))], [4, 10]),
]


def plain(state):
    return {k: (dict(v) if k == "milestones" else [plain(s) for s in v] if k == "_schedulers" else v)
            for k, v in state.items() if k not in ("anneal_func", "_schedule_phases")}


def schedule_case(name, settings, milestones=None):
    weights = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))]
    optimizer = torch.optim.SGD([{"params": weights[:1]}, {"params": weights[1:], "lr": 0.5}], lr=0.1, momentum=0.9)
    if isinstance(settings, list):
        parts = [getattr(schedulers, n)(optimizer, **s) for n, s in settings]
        schedule = (schedulers.ChainedScheduler(parts) if name == "Chained"
                    else schedulers.SequentialLR(optimizer, parts, milestones))
    else:
        schedule = getattr(schedulers, name)(optimizer, **settings)
    rates, state, groups = [], None, None
    for epoch in range(16):
        rates.append([x for g in optimizer.param_groups for x in (g["lr"], g["momentum"])])
        if epoch == 6:
            state, groups = plain(schedule.state_dict()), optimizer.state_dict()
        if epoch < 15:
            optimizer.step()
            schedule.step()
    parts = [[n, s] for n, s in settings] if isinstance(settings, list) else [[name, settings]]
    return {"name": name, "parts": parts, "milestones": milestones or [], "state": state, "optimizer": groups,
            "rates": torch.tensor(rates, dtype=torch.float64)}


torch.save([schedule_case(*case) for case in SCHEDULES], "data/schedules.pt")


def clip_case(dtype, max_norm, norm_type, scale):
    parameters = [torch.nn.Parameter(t.clone().to(dtype)) for t in start]
    for p, g in zip(parameters, gradients[0]):
        p.grad = (g * scale).to(dtype)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
    return {"double": dtype is torch.float64, "max_norm": max_norm, "norm_type": norm_type, "scale": scale,
            "norm": norm.double().item(), "clipped": flat([p.grad for p in parameters])}


torch.save([clip_case(d, m, n, s) for d in (torch.float32, torch.float64) for m in (0.5, 100.0)
            for n in (2.0, 1.0, 3.0, float("inf")) for s in (1.0, 1e-3, 50.0)], "data/clip.pt")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 8, bias=False)  # a bias would have a gradient of nothing but noise
        self.norm = torch.nn.BatchNorm1d(8)
        self.second = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.second(torch.tanh(self.norm(self.first(x))))


def training_case():
    """A whole training in the order of the samples, 50 of them in batches of 16."""
    net = Net()
    torch.jit.script(net).save("data/net.pt")
    x, y = torch.randn(50, 6), torch.randint(0, 3, (50,))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
    losses = []
    for _ in range(3):
        for begin in range(0, 50, 16):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x[begin:begin + 16]), y[begin:begin + 16])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    torch.save({"x": x, "y": y, "losses": losses, "state": dict(net.state_dict())}, "data/training.pt")


training_case()
