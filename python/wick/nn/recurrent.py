"""Recurrent layers and cells."""

import math
from typing import List, Optional, Tuple

from wick import torch
from wick.nn import init
from wick.nn.module import Module, Parameter
from wick.torch import Tensor


class _Recurrent(Module):
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
        self._names = []
        for layer in range(num_layers):
            for end in ["", "_reverse"][: 1 + bidirectional]:
                columns = input_size if layer == 0 else hidden_size * (1 + bidirectional)
                shapes = {"weight_ih": [rows, columns], "weight_hh": [rows, hidden_size]}
                if bias:
                    shapes.update(bias_ih=[rows], bias_hh=[rows])
                for kind, shape in shapes.items():
                    name = f"{kind}_l{layer}{end}"
                    self.register_parameter(name, Parameter(torch.empty(shape)))
                    self._names.append(name)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    @property
    def _weights(self):
        return [getattr(self, name) for name in self._names]

    def _start(self, input):
        batch = input.shape[0 if self.batch_first else 1]
        count = self.num_layers * (1 + self.bidirectional)
        return input.new_zeros([count, batch, self.hidden_size])

    def _run(self, operator, input, state):
        return operator(
            input,
            state,
            self._weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )

    def forward(self, input, hx=None):
        single = input.dim() == 2
        if single:
            input = input.unsqueeze(0 if self.batch_first else 1)
            hx = None if hx is None else hx.unsqueeze(1)
        hx = self._start(input) if hx is None else hx
        output, hidden = self._run(self._operator, input, hx)
        if single:
            return output.squeeze(0 if self.batch_first else 1), hidden.squeeze(1)
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

    @property
    def _operator(self):
        return torch.rnn_tanh if self.nonlinearity == "tanh" else torch.rnn_relu


class GRU(_Recurrent):
    _gates = 3

    @property
    def _operator(self):
        return torch.gru


class LSTM(_Recurrent):
    _gates = 4

    def forward(self, input, hx=None):
        single = input.dim() == 2
        place = 0 if self.batch_first else 1
        if single:
            input = input.unsqueeze(place)
            hx = None if hx is None else tuple(h.unsqueeze(1) for h in hx)
        if hx is None:
            start = self._start(input)
            hx = (start, start)
        output, hidden, cell = self._run(torch.lstm, input, list(hx))
        if single:
            return output.squeeze(place), (hidden.squeeze(1), cell.squeeze(1))
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


class RNNCell(_Cell):
    _gates = 1

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        if hx is None:
            hx = input.new_zeros([input.size(0), self.hidden_size])
        return torch.rnn_tanh_cell(
            input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )


class GRUCell(_Cell):
    _gates = 3

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        if hx is None:
            hx = input.new_zeros([input.size(0), self.hidden_size])
        return torch.gru_cell(
            input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )


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
