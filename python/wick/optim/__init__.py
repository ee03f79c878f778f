"""torch.optim: optimizers over tensors, with states that PyTorch's optimizers load."""

import collections

from wick import _C, torch


def _full_like(p, value):
    """A state that holds one number everywhere.

    On the device "lazy" it is data, not a call that is recorded: so the step that makes it is the same
    program as the steps behind it.
    """
    if p.device.type != "lazy":
        return torch.full_like(p, value)
    return torch.full(p.shape, value, dtype=p.dtype).to(p.device)


class Optimizer:
    """Groups of parameters with their settings, and a state for each parameter."""

    def __init__(self, params, defaults):
        self.defaults = defaults
        self.state = collections.defaultdict(dict)
        self.param_groups = []
        params = list(params)
        if not params:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(params[0], dict):
            params = [{"params": params}]
        for group in params:
            self.add_param_group(group)

    def add_param_group(self, group):
        group = dict(group)
        given = group["params"]
        group["params"] = [given] if isinstance(given, torch.Tensor) else list(given)
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for p in group["params"]:
            if not isinstance(p, torch.Tensor):
                raise TypeError(f"an optimizer takes tensors, not {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(p) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            known.add(id(p))
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad.detach_().zero_()

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, self.state[p], group)
        return loss

    def _update(self, p, grad, state, group):
        raise NotImplementedError

    # ---- states ----

    def _numbers(self):
        return {
            id(p): i
            for i, p in enumerate(p for group in self.param_groups for p in group["params"])
        }

    def state_dict(self):
        numbers = self._numbers()
        groups = [
            {**group, "params": [numbers[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        return {
            "state": {numbers[id(p)]: dict(state) for p, state in self.state.items()},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict):
        groups = state_dict["param_groups"]
        if [len(g["params"]) for g in groups] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError(
                "loaded state dict doesn't match the optimizer's parameter groups: expected groups of "
                f"{[len(g['params']) for g in self.param_groups]} parameters, got "
                f"{[len(g['params']) for g in groups]}"
            )
        by_number = {
            number: p
            for group, own in zip(groups, self.param_groups)
            for number, p in zip(group["params"], own["params"])
        }
        self.state.clear()
        for number, state in state_dict["state"].items():
            self.state[by_number[number]] = {
                name: value.clone() if isinstance(value, _C.Tensor) else value
                for name, value in state.items()
            }
        for group, own in zip(groups, self.param_groups):
            own.update({name: value for name, value in group.items() if name != "params"})


def _check_settings(kind, **settings):
    for name, value in settings.items():
        if not value >= 0:
            raise ValueError(f"{kind}: expected a number from 0 on as {name}, got {value}")


class SGD(Optimizer):
    def __init__(
        self,
        params,
        lr,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
    ):
        _check_settings("SGD", lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "SGD: Nesterov momentum requires a momentum and zero dampening, got momentum "
                f"{momentum} and dampening {dampening}"
            )
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
                maximize=maximize,
            ),
        )

    def _update(self, p, grad, state, group):
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None and grad.device.type == "lazy" and not group["dampening"]:
                # Any number may be added to -0.0 without a change.
                buffer = state["momentum_buffer"] = _full_like(p, -0.0)
                buffer.mul_(group["momentum"]).add_(grad, alpha=1)
            elif buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        p.add_(grad, alpha=-group["lr"])


class Adam(Optimizer):
    _decoupled = False  # whether weights decay apart from the gradient

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        maximize=False,
    ):
        _check_settings(type(self).__name__, lr=lr, eps=eps, weight_decay=weight_decay)
        if len(betas) != 2 or not all(0 <= b < 1 for b in betas):
            raise ValueError(
                f"{type(self).__name__}: expected two betas from 0 to below 1, got {betas}"
            )
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=tuple(betas),
                eps=eps,
                weight_decay=weight_decay,
                amsgrad=amsgrad,
                maximize=maximize,
            ),
        )

    def _update(self, p, grad, state, group):
        if group["maximize"]:
            grad = -grad
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = _full_like(p, 0.0)
            state["exp_avg_sq"] = _full_like(p, 0.0)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = _full_like(p, 0.0)
        state["step"] += 1
        step = state["step"].item()
        lr, (beta1, beta2) = group["lr"], group["betas"]
        if group["weight_decay"]:
            if self._decoupled:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(p, alpha=group["weight_decay"])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(beta1).add_(grad, alpha=1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            square = torch.maximum(state["max_exp_avg_sq"], square)
            state["max_exp_avg_sq"].copy_(square)
        scale = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
        p.addcdiv_(mean, scale, value=-lr / (1 - beta1**step))


class AdamW(Adam):
    _decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, **rest):
        super().__init__(params, lr, betas, eps, weight_decay, **rest)


class RMSprop(Optimizer):
    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False
    ):
        super().__init__(
            params,
            dict(
                lr=lr,
                alpha=alpha,
                eps=eps,
                weight_decay=weight_decay,
                momentum=momentum,
                centered=centered,
            ),
        )

    def _update(self, p, grad, state, group):
        if not state:
            state["step"] = 0
            state["square_avg"] = _full_like(p, 0.0)
            if group["momentum"]:
                state["momentum_buffer"] = _full_like(p, 0.0)
            if group["centered"]:
                state["grad_avg"] = _full_like(p, 0.0)
        state["step"] += 1
        alpha = group["alpha"]
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        square = state["square_avg"]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.mul_(alpha).add_(grad, alpha=1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        scale = square.sqrt().add_(group["eps"])
        if group["momentum"]:
            buffer = state["momentum_buffer"]
            buffer.mul_(group["momentum"]).addcdiv_(grad, scale)
            p.add_(buffer, alpha=-group["lr"])
        else:
            p.addcdiv_(grad, scale, value=-group["lr"])


class Adagrad(Optimizer):
    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, eps=1e-10):
        super().__init__(
            params, dict(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)
        )

    def _update(self, p, grad, state, group):
        if not state:
            state["step"] = torch.tensor(0.0)
            state["sum"] = _full_like(p, 0.0)
        state["step"] += 1
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        rate = group["lr"] / (1 + (state["step"].item() - 1) * group["lr_decay"])
        state["sum"].addcmul_(grad, grad, value=1)
        p.addcdiv_(grad, state["sum"].sqrt().add_(group["eps"]), value=-rate)


from wick.optim import lr_scheduler  # noqa: E402,F401
