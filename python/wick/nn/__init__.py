"""torch.nn: modules, and the functions of the language under `functional`."""

import sys as _sys

from wick import _namespace

_language_name = "torch.nn"
_module = _sys.modules[__name__]
functional = _namespace.submodule("wick.nn.functional", "torch.nn.functional")

from wick.nn import init, utils  # noqa: E402
from wick.nn.module import Module, Parameter  # noqa: E402
from wick.nn.containers import (  # noqa: E402
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from wick.nn.layers import *  # noqa: E402,F401,F403
from wick.nn.losses import *  # noqa: E402,F401,F403
from wick.nn.pooling import *  # noqa: E402,F401,F403
from wick.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell  # noqa: E402
from wick.nn.attention import (  # noqa: E402
    MultiheadAttention,
    TransformerEncoder,
    TransformerEncoderLayer,
)


def __getattr__(name):
    return _namespace.find_member(_module, "torch.nn", name)
