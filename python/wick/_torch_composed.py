"""Operators that PyTorch composes of others, for recordings within torch.autocast: there each part is cast by itself.

They are called with Wick's tensors, in place of Wick's own operators, which do all at once."""

from wick import _C, torch

MAX_STEPS = 1024  # of a recurrent layer: each one is a part of the graph


def _refuse(reason):
    raise RuntimeError(reason + " within torch.autocast")


# ---- recurrent layers, as PyTorch computes them on the CPU ----


def _gates(hidden, weights, given):
    return torch.nn.functional.linear(hidden, weights[1], weights[3]).add_(given)


def _lstm_step(given, state, weights):
    hidden, cell = state
    first, forget, new, last = _gates(hidden, weights, given).chunk(4, 1)
    cell = (forget.sigmoid_() * cell).add_(first.sigmoid_() * new.tanh_())
    hidden = last.sigmoid_() * cell.tanh()
    if weights[4] is not None:
        hidden = hidden.matmul(weights[4].t())
    return hidden, cell


def _gru_step(given, state, weights):
    reset, keep, new = given.chunk(3, 1)
    of_hidden = torch.nn.functional.linear(state[0], weights[1], weights[3]).chunk(3, 1)
    reset = of_hidden[0].add_(reset).sigmoid_()
    keep = of_hidden[1].add_(keep).sigmoid_()
    new = new.add(of_hidden[2].mul_(reset)).tanh_()
    return ((state[0] - new).mul_(keep).add_(new),)


def _tanh_step(given, state, weights):
    return (_gates(state[0], weights, given).tanh(),)


def _relu_step(given, state, weights):
    return (_gates(state[0], weights, given).relu(),)


def _direction(step, sequence, state, weights, reverse):
    given = torch.nn.functional.linear(sequence, weights[0], weights[2]).unbind(0)
    outputs = []
    for each in reversed(given) if reverse else given:
        state = step(each, state, weights)
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    return torch.stack(outputs, 0), state


def _grouped(params, biased, projected):
    """Weights by layer and direction: input, hidden, their biases, projection."""
    size = 2 + 2 * biased + projected
    for i in range(0, len(params), size):
        given = params[i : i + size]
        biases = given[2:4] if biased else (None, None)
        yield (given[0], given[1], *biases, given[-1] if projected else None)


def _layers(step, sequence, states, settings):
    params, has_biases, num_layers, dropout, train, bidirectional, batch_first = settings
    if not isinstance(has_biases, bool):
        _refuse("a recurrent layer on packed sequences")
    if batch_first:
        sequence = sequence.transpose(0, 1)
    directions = 2 if bidirectional else 1
    if len(sequence) * num_layers * directions > MAX_STEPS:
        _refuse("a recurrent layer of many steps")
    count = 2 + 2 * has_biases
    weights = list(_grouped(params, has_biases, len(params) > count * num_layers * directions))
    unbound = [state.unbind(0) for state in states]
    finals = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            output, final = _direction(
                step, sequence, tuple(each[i] for each in unbound), weights[i], direction == 1
            )
            outputs.append(output)
            finals.append(final)
        sequence = torch.cat(outputs, outputs[0].dim() - 1) if bidirectional else outputs[0]
        if dropout != 0 and train and layer < num_layers - 1:
            sequence = torch.nn.functional.dropout(sequence, dropout, True)
    if batch_first:
        sequence = sequence.transpose(0, 1)
    return (sequence, *(torch.stack(list(each), 0) for each in zip(*finals)))


def lstm(input, hx, *settings):
    if not isinstance(hx, (tuple, list)):
        _refuse("a recurrent layer on packed sequences")
    return _layers(_lstm_step, input, tuple(hx), settings)


def gru(input, hx, *settings):
    return _layers(_gru_step, input, (hx,), settings)


def rnn_tanh(input, hx, *settings):
    return _layers(_tanh_step, input, (hx,), settings)


def rnn_relu(input, hx, *settings):
    return _layers(_relu_step, input, (hx,), settings)


def _cell(step, input, state, w_ih, w_hh, b_ih=None, b_hh=None):
    weights = (w_ih, w_hh, b_ih, b_hh, None)
    return step(torch.nn.functional.linear(input, w_ih, b_ih), state, weights)


def lstm_cell(input, hx, *weights):
    return _cell(_lstm_step, input, tuple(hx), *weights)


def gru_cell(input, hx, *weights):
    return _cell(_gru_step, input, (hx,), *weights)[0]


def rnn_tanh_cell(input, hx, *weights):
    return _cell(_tanh_step, input, (hx,), *weights)[0]


def rnn_relu_cell(input, hx, *weights):
    return _cell(_relu_step, input, (hx,), *weights)[0]


# ---- sums of products ----


def einsum(equation, *operands):
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or "." in equation or len(operands) > 2:
        _refuse("einsum of this form")
    equation = equation.replace(" ", "")
    left, _, right = equation.partition("->")
    labels = left.split(",")
    if "->" not in equation:
        right = "".join(sorted(c for c in set(left) if c != "," and left.count(c) == 1))
    if len(labels) != len(operands):
        _refuse("einsum of this form")
    _C.set_autocast_cpu_enabled(False)
    try:
        if len(operands) == 2:
            summed = [set(each) - set(right) for each in labels]
            if summed[0] != summed[1] or any(len(set(each)) != len(each) for each in labels):
                _refuse("einsum that sums one operand by itself")
            sizes = [dict(zip(text, each.shape)) for text, each in zip(labels, operands)]
            if any(sizes[0][c] == 1 or sizes[1][c] == 1 for c in summed[0]):
                _refuse("einsum over a dimension of size 1")
            if summed[0]:
                operands = [_low(each) for each in operands]
        return torch.einsum(equation, *operands)
    finally:
        _C.set_autocast_cpu_enabled(True)


def _low(tensor):
    if not tensor.is_floating_point() or tensor.dtype is _C.float64:
        return tensor
    return tensor.to(_C.get_autocast_cpu_dtype())
