// Recurrent networks: as scripts of their steps, which record themselves.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

// Kinds: 0 lstm, 1 gru, 2 tanh, 3 relu. The weights of a layer and direction are w_ih, w_hh, with
// biases b_ih and b_hh, and w_hr where an LSTM projects its output.
constexpr HelperText kNnRecurrentHelpers[] = {
    {"rnn_step", R"(
def rnn_step(kind: int, gates: Tensor, h: Tensor, c: Tensor, w_hh: Tensor, b_hh: Optional[Tensor], w_hr: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    hidden = torch.linear(h, w_hh, b_hh)
    if kind == 0:
        into, forget, cell, out = torch.chunk(gates + hidden, 4, -1)
        next_c = torch.sigmoid(forget) * c + torch.sigmoid(into) * torch.tanh(cell)
        next_h = torch.sigmoid(out) * torch.tanh(next_c)
        if w_hr is not None:
            next_h = torch.linear(next_h, w_hr, None)
        return (next_h, next_c)
    if kind == 1:
        gate_r, gate_u, gate_n = torch.chunk(gates, 3, -1)
        hidden_r, hidden_u, hidden_n = torch.chunk(hidden, 3, -1)
        reset = torch.sigmoid(gate_r + hidden_r)
        update = torch.sigmoid(gate_u + hidden_u)
        fresh = torch.tanh(gate_n + reset * hidden_n)
        return (fresh + update * (h - fresh), c)
    if kind == 2:
        return (torch.tanh(gates + hidden), c)
    return (torch.relu(gates + hidden), c)
)"},
    {"rnn_padded", R"(
def rnn_padded(kind: int, input: Tensor, h0: Tensor, c0: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor], w_hr: Optional[Tensor], reverse: bool) -> Tuple[Tensor, Tensor, Tensor]:
    if kind == 0 and w_hr is None and (input.is_cuda or input.dtype == torch.float or input.dtype == torch.double):
        out, last_h, last_c, cells, activated = torch.ops.wick.lstm_layer(torch.linear(input, w_ih, b_ih), h0, c0, w_hh, b_hh, reverse)
        return (out, last_h, last_c)
    h = h0
    c = c0
    time = input.size(0)
    steps = torch.unbind(torch.linear(input, w_ih, b_ih), 0)
    outputs: List[Tensor] = []
    for i in range(time):
        h, c = rnn_step(kind, steps[time - 1 - i if reverse else i], h, c, w_hh, b_hh, w_hr)
        outputs.append(h)
    if reverse:
        outputs.reverse()
    if time == 0:
        return (torch.empty([0, input.size(1), h.size(-1)], dtype=input.dtype, device=input.device), h, c)
    return (torch.stack(outputs, 0), h, c)
)"},
    // The gradient once more, of operators that have gradients.
    {"lstm_layer_gradient_made", R"(
def lstm_layer_gradient_made(grad_out: Tensor, grad_h: Tensor, grad_c: Tensor, gates: Tensor, h: Tensor, c: Tensor, w_hh: Tensor, b_hh: Optional[Tensor], reverse: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    time = gates.size(0)
    hs: List[Tensor] = []
    cs: List[Tensor] = []
    activated: List[List[Tensor]] = []
    next_h = h
    next_c = c
    for i in range(time):
        hs.append(next_h)
        cs.append(next_c)
        into, forget, cell, out = torch.chunk(gates.select(0, time - 1 - i if reverse else i) + torch.linear(next_h, w_hh, b_hh), 4, -1)
        all = [torch.sigmoid(into), torch.sigmoid(forget), torch.tanh(cell), torch.sigmoid(out)]
        next_c = all[1] * next_c + all[0] * all[2]
        shown = torch.tanh(next_c)
        all.append(shown)
        next_h = all[3] * shown
        activated.append(all)
    dh = grad_h
    dc = grad_c
    by_w = torch.zeros_like(w_hh)
    by_gates: List[Tensor] = []
    for j in range(time):
        i = time - 1 - j
        into, forget, cell, out, shown = activated[i]
        dh = dh + grad_out.select(0, time - 1 - i if reverse else i)
        dc = dc + dh * out * (1 - shown * shown)
        by_step = torch.cat([dc * cell * into * (1 - into), dc * cs[i] * forget * (1 - forget), dc * into * (1 - cell * cell), dh * shown * out * (1 - out)], -1)
        dc = dc * forget
        by_w = by_w + torch.matmul(by_step.t(), hs[i])
        dh = torch.matmul(by_step, w_hh)
        by_gates.append(by_step)
    if time == 0:
        return (torch.zeros_like(gates), dh, dc, by_w, torch.zeros_like(w_hh.select(1, 0)))
    if not reverse:
        by_gates.reverse()
    all_gates = torch.stack(by_gates, 0)
    return (all_gates, dh, dc, by_w, all_gates.sum([0, 1]))
)"},
    // Sequences are sorted by length, so the running ones are the first rows.
    {"rnn_packed", R"(
def rnn_packed(kind: int, input: Tensor, batches: List[int], h0: Tensor, c0: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor], w_hr: Optional[Tensor], reverse: bool) -> Tuple[Tensor, Tensor, Tensor]:
    time = len(batches)
    steps = torch.split_with_sizes(torch.linear(input, w_ih, b_ih), batches, 0)
    outputs: List[Tensor] = []
    ended_h: List[Tensor] = []
    ended_c: List[Tensor] = []
    lstm = kind == 0
    h = h0
    c = c0
    if reverse:
        h = h0.narrow(0, 0, batches[time - 1])
        if lstm:
            c = c0.narrow(0, 0, batches[time - 1])
    for i in range(time):
        t = time - 1 - i if reverse else i
        n = batches[t]
        have = h.size(0)
        if n > have:
            h = torch.cat([h, h0.narrow(0, have, n - have)], 0)
            if lstm:
                c = torch.cat([c, c0.narrow(0, have, n - have)], 0)
        elif n < have:
            ended_h.insert(0, h.narrow(0, n, have - n))
            h = h.narrow(0, 0, n)
            if lstm:
                ended_c.insert(0, c.narrow(0, n, have - n))
                c = c.narrow(0, 0, n)
        h, c = rnn_step(kind, steps[t], h, c, w_hh, b_hh, w_hr)
        outputs.append(h)
    if reverse:
        outputs.reverse()
    if len(ended_h) > 0:
        ended_h.insert(0, h)
        h = torch.cat(ended_h, 0)
        if lstm:
            ended_c.insert(0, c)
            c = torch.cat(ended_c, 0)
    return (torch.cat(outputs, 0), h, c)
)"},
    {"rnn_checked", R"(
def rnn_checked(kind: int, hx: List[Tensor], params: List[Tensor], each: int, count: int, batch: int) -> int:
    wanted = 2 if kind == 0 else 1
    if len(hx) != wanted:
        raise RuntimeError('expected ' + str(wanted) + ' hidden states, got ' + str(len(hx)))
    for h in hx:
        if h.dim() != 3 or h.size(0) != count:
            raise RuntimeError('Expected hidden size (' + str(count) + ', batch, features), got ' + str(h.size()))
    if len(params) != each * count:
        raise RuntimeError('expected ' + str(each * count) + ' parameter tensors, got ' + str(len(params)))
    if hx[0].size(1) != batch:
        raise RuntimeError('Expected hidden batch size ' + str(batch) + ', got ' + str(hx[0].size(1)))
    return 0
)"},
    // Padded steps when `batches` is empty.
    {"rnn_layers", R"(
def rnn_layers(kind: int, input: Tensor, batches: List[int], hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor, Tensor]:
    directions = 2 if bidirectional else 1
    projects = kind == 0 and len(hx) == 2 and hx[0].size(-1) != hx[1].size(-1)
    each = (4 if has_biases else 2) + (1 if projects else 0)
    rnn_checked(kind, hx, params, each, num_layers * directions, input.size(1) if len(batches) == 0 else batches[0])
    data = input
    hs: List[Tensor] = []
    cs: List[Tensor] = []
    for layer in range(num_layers):
        outputs: List[Tensor] = []
        for d in range(directions):
            i = layer * directions + d
            w = params[i * each:(i + 1) * each]
            b_ih: Optional[Tensor] = None
            b_hh: Optional[Tensor] = None
            w_hr: Optional[Tensor] = None
            if has_biases:
                b_ih = w[2]
                b_hh = w[3]
            if projects:
                w_hr = w[each - 1]
            h0 = hx[0].select(0, i)
            c0 = hx[1].select(0, i) if kind == 0 else h0
            if len(batches) == 0:
                out, h, c = rnn_padded(kind, data, h0, c0, w[0], w[1], b_ih, b_hh, w_hr, d == 1)
            else:
                out, h, c = rnn_packed(kind, data, batches, h0, c0, w[0], w[1], b_ih, b_hh, w_hr, d == 1)
            outputs.append(out)
            hs.append(h)
            cs.append(c)
        data = outputs[0] if directions == 1 else torch.cat(outputs, -1)
        if train and dropout > 0 and layer + 1 < num_layers:
            data = torch.dropout(data, dropout, True)
    last_c = torch.stack(cs, 0) if kind == 0 else torch.empty([0])
    return (data, torch.stack(hs, 0), last_c)
)"},
    {"rnn_input", R"(
def rnn_input(kind: int, input: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    if input.dim() != 3:
        raise RuntimeError('input must have 3 dimensions, got ' + str(input.dim()))
    data = input.transpose(0, 1) if batch_first else input
    batches: List[int] = []
    out, h, c = rnn_layers(kind, data, batches, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return (out.transpose(0, 1) if batch_first else out, h, c)
)"},
    {"rnn_two", R"(
def rnn_two(three: Tuple[Tensor, Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
    return (three[0], three[1])
)"},
    {"rnn_cell_made", R"(
def rnn_cell_made(kind: int, input: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    return rnn_step(kind, torch.linear(input, w_ih, b_ih), h, c, w_hh, b_hh, None)
)"},
};

#define WICK_REST "params, has_biases, num_layers, dropout, train, bidirectional"
#define WICK_INPUT(kind) \
  "return rnn_two(rnn_input(" kind ", input, [hx], " WICK_REST ", batch_first))"
#define WICK_DATA(kind) \
  "return rnn_two(rnn_layers(" kind ", data, list_of_lengths(batch_sizes), [hx], " WICK_REST "))"
#define WICK_CELL(kind) "return rnn_cell_made(" kind ", input, hx, hx, w_ih, w_hh, b_ih, b_hh)[0]"

constexpr FormulaText kNnRecurrentFormulas[] = {
    {"wick::lstm_layer", R"(results 0 1 2
let all = torch.ops.wick.lstm_layer_gradient(grad0, grad1, grad2, result0, result3, result4,
    gates, h, c, w_hh, b_hh, reverse)
gates: all[0]
h: all[1]
c: all[2]
w_hh: all[3]
b_hh: all[4])"},
    {"wick::lstm_layer_gradient",
     "return lstm_layer_gradient_made(grad_out, grad_h, grad_c, gates, h, c, w_hh, b_hh, reverse)"},
    {"aten::lstm.input", "return rnn_input(0, input, hx, " WICK_REST ", batch_first)"},
    {"aten::lstm.data",
     "return rnn_layers(0, data, list_of_lengths(batch_sizes), hx, " WICK_REST ")"},
    {"aten::gru.input", WICK_INPUT("1")},
    {"aten::gru.data", WICK_DATA("1")},
    {"aten::rnn_tanh.input", WICK_INPUT("2")},
    {"aten::rnn_tanh.data", WICK_DATA("2")},
    {"aten::rnn_relu.input", WICK_INPUT("3")},
    {"aten::rnn_relu.data", WICK_DATA("3")},
    {"aten::lstm_cell", "return rnn_cell_made(0, input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh)"},
    {"aten::gru_cell", WICK_CELL("1")},
    {"aten::rnn_tanh_cell", WICK_CELL("2")},
    {"aten::rnn_relu_cell", WICK_CELL("3")},
};
const RegisterFormulas kNnRecurrentRegistered(kNnRecurrentFormulas, kNnRecurrentHelpers);

}  // namespace

}  // namespace wick::autograd
