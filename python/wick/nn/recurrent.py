"""Recurrent layers and cells."""

import math
from typing import List, Optional, Tuple

from wick import torch
from wick.nn import init
from wick.nn.module import Module, Parameter
from wick.torch import Tensor


class _Recurrent(Module):
    # The parameters in the order in which operators take them; programs read this list.
    _flat_weights: List[Tensor]

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
    ):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0
        rows = self._gates * hidden_size
        names = []
        for layer in range(num_layers):
            for end in ["", "_reverse"][: 1 + bidirectional]:
                columns = input_size if layer == 0 else hidden_size * (1 + bidirectional)
                shapes = {"weight_ih": [rows, columns], "weight_hh": [rows, hidden_size]}
                if bias:
                    shapes.update(bias_ih=[rows], bias_hh=[rows])
                for kind, shape in shapes.items():
                    name = f"{kind}_l{layer}{end}"
                    self.register_parameter(name, Parameter(torch.empty(shape)))
                    names.append(name)
        self._names = names
        self._flat_weights = [getattr(self, name) for name in names]
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in self.__dict__.get("_names", ()):
            self._flat_weights = [getattr(self, n) for n in self._names]

    # Whether the input has no batch; then it gets one of one sequence.
    def _single(self, input: Tensor) -> bool:
        return input.dim() == 2

    def _place(self) -> int:
        return 0 if self.batch_first else 1

    def _batched(self, input: Tensor) -> Tensor:
        if not torch.jit.is_tracing() and input.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                + str(self.input_size) + ", got " + str(input.size(-1))
            )
        return input.unsqueeze(self._place()) if self._single(input) else input

    # The state before the first step, or zeros.
    def _state(self, input: Tensor, state: Optional[Tensor]) -> Tensor:
        if state is not None:
            return state.unsqueeze(1) if self._single(input) else state
        batch = 1 if self._single(input) else input.size(self._place())
        count = self.num_layers * (2 if self.bidirectional else 1)
        return torch.zeros(
            [count, batch, self.hidden_size], dtype=input.dtype, device=input.device
        )

    def _unbatched(self, input: Tensor, output: Tensor, hidden: Tensor) -> Tuple[Tensor, Tensor]:
        if self._single(input):
            return output.squeeze(self._place()), hidden.squeeze(1)
        return output, hidden

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"


class RNN(_Recurrent):
    _gates = 1

    def __init__(self, *args, nonlinearity="tanh", **kwargs):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"unknown nonlinearity '{nonlinearity}'")
        super().__init__(*args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        x = self._batched(input)
        state = self._state(input, hx)
        if self.nonlinearity == "tanh":
            output, hidden = torch.rnn_tanh(
                x,
                state,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        else:
            output, hidden = torch.rnn_relu(
                x,
                state,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        return self._unbatched(input, output, hidden)


class GRU(_Recurrent):
    _gates = 3

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        output, hidden = torch.gru(
            self._batched(input),
            self._state(input, hx),
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        return self._unbatched(input, output, hidden)


class LSTM(_Recurrent):
    _gates = 4

    def forward(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        if hx is None:
            start = self._state(input, None)
            state = [start, start]
        else:
            state = [self._state(input, hx[0]), self._state(input, hx[1])]
        output, hidden, cell = torch.lstm(
            self._batched(input),
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        if self._single(input):
            cell = cell.squeeze(1)
        output, hidden = self._unbatched(input, output, hidden)
        return output, (hidden, cell)


class _Cell(Module):
    def __init__(self, input_size, hidden_size, bias=True):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows = self._gates * hidden_size
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0
        self.weight_ih = Parameter(torch.empty([rows, input_size]))
        self.weight_hh = Parameter(torch.empty([rows, hidden_size]))
        self.register_parameter("bias_ih", Parameter(torch.empty([rows])) if bias else None)
        self.register_parameter("bias_hh", Parameter(torch.empty([rows])) if bias else None)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)


def _simple_cell(gates, operator):
    class Made(_Cell):
        _gates = gates

        def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
            if hx is None:
                hx = input.new_zeros([input.size(0), self.hidden_size])
            return operator(
                input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
            )

    return Made


class RNNCell(_simple_cell(1, torch.rnn_tanh_cell)):
    pass


class GRUCell(_simple_cell(3, torch.gru_cell)):
    pass


class LSTMCell(_Cell):
    _gates = 4

    def forward(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tensor]:
        if hx is None:
            zeros = input.new_zeros([input.size(0), self.hidden_size])
            hx = (zeros, zeros)
        state: List[Tensor] = [hx[0], hx[1]]
        return torch.lstm_cell(
            input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
