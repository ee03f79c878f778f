// einsum as it is made of other operators. Every letter gets one dimension of all operands (missing
// ones have size 1), then operands are joined from left to right: letters that nobody needs any
// more are contracted by one batched product of matrices.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kEinsumHelpers[] = {
    // Letters as numbers up to 51; 52 is an ellipsis.
    {"einsum_labels", R"(
def einsum_labels(text: str) -> List[int]:
    labels: List[int] = []
    i = 0
    while i < len(text):
        c = text[i]
        i += 1
        if c == '.':
            assert text[i - 1:i + 2] == '...' and 52 not in labels, "einsum(): found '.' for operand that is not part of any ellipsis"
            labels.append(52)
            i += 2
        elif c != ' ':
            code = ord(c)
            if code >= 65 and code <= 90:
                labels.append(code - 65)
            elif code >= 97 and code <= 122:
                labels.append(code - 97 + 26)
            else:
                raise RuntimeError('einsum(): invalid subscript given in the equation string, subscripts must be in [a-zA-Z]')
    return labels
)"},
    // How many dimensions of an operand its ellipsis stands for.
    {"einsum_hidden", R"(
def einsum_hidden(t: Tensor, labels: List[int]) -> int:
    dots = 52 in labels
    hidden = t.dim() - len(labels) + (1 if dots else 0)
    if hidden < 0 or (hidden > 0 and not dots):
        raise RuntimeError('einsum(): the number of subscripts in the equation does not match the number of dimensions of an operand')
    return hidden
)"},
    // The letters in the order of the dimensions: the result's, then those that are summed.
    {"einsum_order", R"(
def einsum_order(left: List[List[int]], result: Optional[List[int]]) -> List[int]:
    uses = [0] * 52
    for labels in left:
        for l in labels:
            if l < 52:
                uses[l] += 1
    order: List[int] = []
    if result is None:
        order.append(52)
        for l in range(52):
            if uses[l] == 1:
                order.append(l)
    else:
        for l in result:
            assert l not in order and (l == 52 or uses[l] > 0), 'einsum(): output subscript appears more than once in the output or not in any input'
            order.append(l)
    kept = len(order)
    if 52 not in order:
        order.append(52)
    for l in range(52):
        if uses[l] > 0 and l not in order:
            order.append(l)
    return order + [kept]
)"},
    // An operand with its letters where the order says; repeated letters take the diagonal.
    {"einsum_arranged", R"(
def einsum_arranged(operand: Tensor, labels: List[int], order: List[int], ellipsis: int) -> Tensor:
    hidden = einsum_hidden(operand, labels)
    t = operand
    seen: List[int] = []
    for l in labels:
        if l == 52:
            for i in range(hidden):
                seen.append(52 + ellipsis - hidden + i)
        elif l in seen:
            at = seen.index(l)
            d = len(seen)
            assert t.size(at) == t.size(d), "einsum(): subscript is repeated for an operand but the sizes don't match"
            t = t.diagonal(0, at, d).movedim(-1, at)
        else:
            seen.append(l)
    places: List[int] = []
    size: List[int] = []
    for l in order:
        for k in range(ellipsis if l == 52 else 1):
            if l + k in seen:
                at = seen.index(l + k)
                places.append(at)
                size.append(t.size(at))
            else:
                size.append(1)
    return t.permute(places).reshape(size)
)"},
    // Sums some dimensions of the product of two operands of the same rank.
    {"einsum_joined", R"(
def einsum_joined(left: Tensor, right: Tensor, summed: List[bool]) -> Tensor:
    a = left
    b = right
    batch: List[int] = []
    rows: List[int] = []
    columns: List[int] = []
    inner: List[int] = []
    for d in range(a.dim()):
        if summed[d] and (a.size(d) == 1 or b.size(d) == 1):
            # Only one operand has this letter: its sum can be taken first.
            if a.size(d) != 1:
                a = a.sum([d], True)
            if b.size(d) != 1:
                b = b.sum([d], True)
            batch.append(d)
        elif summed[d]:
            inner.append(d)
        elif a.size(d) != 1 and b.size(d) != 1:
            batch.append(d)
        elif a.size(d) != 1:
            rows.append(d)
        else:
            columns.append(d)
    if len(inner) == 0:
        return a * b
    size: List[int] = []
    counts = [1, 1, 1, 1]
    for d in batch:
        assert a.size(d) == b.size(d), 'einsum(): operands do not broadcast with remapped shapes'
        counts[0] *= a.size(d)
        size.append(a.size(d))
    for d in rows:
        counts[1] *= a.size(d)
        size.append(a.size(d))
    for d in columns:
        counts[2] *= b.size(d)
        size.append(b.size(d))
    for d in inner:
        assert a.size(d) == b.size(d), 'einsum(): operands do not broadcast with remapped shapes'
        counts[3] *= a.size(d)
        size.append(1)
    m1 = a.permute(batch + rows + inner + columns).reshape(counts[0], counts[1], counts[3])
    m2 = b.permute(batch + inner + columns + rows).reshape(counts[0], counts[3], counts[2])
    places = batch + rows + columns + inner
    back = [0] * len(places)
    for i in range(len(places)):
        back[places[i]] = i
    return torch.bmm(m1, m2).reshape(size).permute(back)
)"},
    {"einsum_made", R"(
def einsum_made(equation: str, tensors: List[Tensor]) -> Tensor:
    assert len(tensors) > 0, 'einsum(): must provide at least one operand'
    sides = equation.split('->')
    result: Optional[List[int]] = None
    if len(sides) > 1:
        assert len(sides) == 2, 'einsum(): the equation has more than one arrow'
        result = einsum_labels(sides[1])
    left: List[List[int]] = []
    for text in sides[0].split(','):
        left.append(einsum_labels(text))
    assert len(left) == len(tensors), 'einsum(): the number of operands does not match the equation'
    ellipsis = 0
    for i in range(len(left)):
        ellipsis = max(ellipsis, einsum_hidden(tensors[i], left[i]))
    order = einsum_order(left, result)
    kept = order.pop()
    operands: List[Tensor] = []
    for i in range(len(left)):
        operands.append(einsum_arranged(tensors[i], left[i], order, ellipsis))
    if 52 in order[:kept]:
        kept += ellipsis - 1
    total = operands[0].dim()
    last_use = [0] * total
    for i in range(len(operands)):
        for d in range(total):
            if operands[i].size(d) != 1:
                last_use[d] = i
    out = operands[0]
    for d in range(kept, total):
        if last_use[d] == 0 and out.size(d) != 1:
            out = out.sum([d], True)
    for i in range(1, len(operands)):
        summed = [d >= kept and last_use[d] == i for d in range(total)]
        out = einsum_joined(out, operands[i], summed)
    for d in range(total - kept):
        out = out.select(total - 1 - d, 0)
    return out
)"},
};

constexpr FormulaText kEinsumFormulas[] = {
    {"aten::einsum", "return einsum_made(equation, tensors)"},
};
const RegisterFormulas kEinsumRegistered(kEinsumFormulas, kEinsumHelpers);

}  // namespace

}  // namespace wick::autograd
