"""Expressions with tensors. Operators are common ones, whose results do not depend on the order of additions as long
as numbers stay small."""

from random_base import COLUMN, NM, ONE, SCALAR, VECTOR, X, Base, expressions

FLOAT_FORMS = expressions("""
    6: ({=} + {~})
    5: ({=} - {~})
    5: ({=} * {n})
    4: ({=} + {n})
    ({n} - {=})
    ({n} * {=})
    3: ({=} * {~}).clamp(-8, 8)
    (-{=})
    (+{=})
    {=}.abs()
    2: {=}.relu()
    torch.relu({=})
    {=}.clamp(min={n})
    {=}.clamp({n}, 4.0)
    torch.clamp({=}, max=3)
    torch.maximum({=}, {=})
    torch.minimum({=}, {=})
    {=}.clone()
    ({=} / {two})
    {=}.neg()
    {=}.add({~}, alpha=2)
    {=}.sub({=})
    {=}.mul({n})
    torch.where({mask}, {same1}, torch.zeros_like({same1}))
    torch.where({mask}, {same1}, ({=}).to({same1}.dtype))
    {=}.masked_fill({mask}, {n})
    {=}.sign()
    {=}.floor()
    {=}.round()
    torch.zeros_like({=})
    torch.ones_like({=})
    torch.full_like({=}, {n})
    {=}.detach()
    {=}.contiguous()
    {=}.to({same}.dtype)
    {=}.type_as({same})
    {=}.square().clamp(max=8)
    ({=} ** 2).clamp(max=16)
    {=}.pow(2).clamp(max=9)
    ({=} % 3)
    ({=} // 2)
    abs({=})
    torch.add({=}, {~})
    torch.mul({=}, {n})
    {=}.float()
    {=}.double()
    {=}.to(torch.float64)
    torch.stack([{=}, {=}]).sum(0)
    torch.stack(({=}, {=}), dim=0)[{bit}]
    sum([{=}, {=}])
    sum(({=}, {=}), {=})
    operator.add({=}, {~})
    functools.reduce(torch.add, [{=}, {=}, {=}])
    2: ({=} + ({i} % 8))
    ({=} * ({i} % 4))
    2: ({=} + {f})
    {whole}.float()
    {mask}.float()
    {mask}.to({same}.dtype)
    ({whole} / 2)
    ({=} + {whole})
    2: ({=} if {b} else {=})
    (lambda {@1}: {@1} + {@1})({=})
    [{=}, {=}][{bit}]
    ({=}, {=})[{bit}]
    {"k": {=}}["k"]
    max([{=}, {=}], key=lambda {@1}: {@1}.dim())
    copy.copy({=})
    copy.deepcopy({=})
    getattr({=}, "abs")()
    {=}.__add__({=})
    {=}.unsqueeze(0).squeeze(0)
    ({=}.unsqueeze(0) + {=})[0]
    torch.nn.functional.relu({=})
    next(iter([{=}, {=}]))
    ({=} or {=}) if {same}.numel() == 1 else {=}
    {=}.reshape({same}.shape)
    {=}.reshape(-1).reshape({same}.shape)
    torch.zeros({same1}.shape, dtype={same1}.dtype)
    torch.full({same}.shape, {n})
    operator.itemgetter({bit})([{=}, {=}])
""")
# With at least one dimension.
RANKED_FORMS = expressions("""
    {=}.reshape(*{same}.size())
    {=}.flip(0)
    {=}.roll(1, 0)
    {=}.cumsum(0)
    {=}.sort(0).values
    torch.cat([{=}, {=}])[:len({same})]
    torch.cat(({=}, {=}), dim=0).narrow(0, 0, {same}.shape[0])
    {=}[:]
    {=}[...]
    {=}[torch.arange({same}.shape[0])]
    torch.stack(list({=}))
    torch.stack([{@1} * 2 for {@1} in {=}])
    torch.stack([*{=}.unbind(0)])
    torch.cat([{@1}.unsqueeze(0) for {@1} in {=}], 0)
    {=}.index_select(0, torch.arange({same}.size(0)))
    {=}.chunk(1)[0]
    ({=} + {one})
    {=}.view({same}.shape) if {same}.is_contiguous() else {=}
    {=}.sum(0, keepdim=True) + {=}
    {=}.amax(0) + {=}
    torch.cat([{=}, {=}])[::2][:1] + {=}
""")
WHOLE_FORMS = expressions("""
    3: ({=} + {=})
    2: ({=} - {#})
    2: ({=} * {#})
    ({=} // {#})
    ({=} % {#})
    (-{=})
    (~{=})
    ({=} & {#})
    ({=} | {=})
    ({=} ^ {=})
    ({=} << 1) % 64
    ({=} >> 1)
    {=}.abs()
    {=}.clamp(0, 3)
    2: {mask}.long()
    {mask}.int()
    {float}.long()
    {=}.to(torch.int64)
    torch.zeros_like({=})
    {=}.clone()
    {=} if {b} else {=}
    ({=} + ({i} % 5))
    torch.maximum({=}, {=})
""")
TRUTH_FORMS = expressions("""
    4: ({float} > {n})
    3: ({float} < {float})
    ({float} >= {n})
    ({float} <= {n})
    ({float} == {n})
    ({float} != {float})
    ({whole} > {#})
    ({whole} == {#})
    ({=} & {=})
    ({=} | {=})
    ({=} ^ {=})
    (~{=})
    {float}.gt({n})
    {float}.le(1)
    {=}.logical_not()
    torch.logical_and({=}, {=})
    {float}.isnan()
    {float}.bool()
    {=}.clone()
    torch.ones_like({=})
    ({n} < {float})
""")
MATRIX_FORMS = expressions("""
    3: {flipped}.t()
    2: {flipped}.transpose(0, 1)
    {flipped}.T
    {flipped}.permute(1, 0)
    2: ({outercolumn} + {outerrow})
    ({=} + {outerrow})
    ({=} - {outercolumn})
    2: {product}
    {flipped}.t().contiguous()
    {=}.sum(1, keepdim=True) + {=}
    ({=} - {=}.amax(1, keepdim=True))
    {=}.cumsum(1)
    {=}.sort(1).values
    {=}.flip(1)
    {=}.flip([0, 1])
    {=}.roll(1, 1)
    {=}[:, :]
    {=}[..., :]
    {=}.tril()
    torch.cat([{=}, {=}], dim=1)[:, :{same}.shape[1]]
    torch.cat([{=}, {=}], dim=-1)[:, ::2] if {same}.shape[1] > 9 else {=}
    {=}.flatten().view({same}.shape)
    {=}.unsqueeze(1).sum(1)
    {=}.unsqueeze(-1).squeeze(-1)
    {=}.softmax(1).argmax(1, keepdim=True) * 0 + {=}
    torch.stack([{outerrowof}, {outerrowof}]).sum(0) + {=}
""")


def mask(self, kind, depth):
    return self.expr(("T", "b", kind[2]), depth - 1)


def whole(self, kind, depth):
    return self.expr(("T", "i", kind[2]), depth - 1)


def floating(self, kind, depth):
    return self.expr(("T", "f", kind[2]), depth - 1)


def same(self, kind, depth):
    """A short expression of the same type: a variable, or one that is not made of others."""
    return self.expr(kind, 0)


def small(self, kind, depth):
    return self.pick(("0.5", "2", "(-1)", "1.5", "(-0.25)", "3", "0.0", "(-2.0)", "1"))


def power(self, kind, depth):
    return self.pick(("2", "4.0", "0.5"))


def bit(self, kind, depth):
    return self.pick(("0", "1", "-1", "0", "1"))


def flipped(self, kind, depth):
    return self.expr(("T", kind[1], kind[2][::-1]), depth - 1)


def product(self, kind, depth):
    inner = self.pick(NM)
    left = self.expr(("T", "f", (kind[2][0], inner)), 0)
    right = self.expr(("T", "f", (inner, kind[2][1])), depth - 1)
    form = self.pick(("({0} @ {1}.to({0}.dtype)).clamp(-8, 8)", "torch.matmul({0}, {1}.to({0}.dtype)).clamp(-8, 8)",
                      "{0}.mm({1}.type_as({0})).clamp(-9, 9)"))
    return form.format(left, right)


def outer_column(self, kind, depth):
    return self.expr(("T", "f", (kind[2][0], 1)), depth - 1)


def outer_row(self, kind, depth):
    return self.expr(("T", "f", (1, kind[2][1])), depth - 1)


def outer_row_of(self, kind, depth):
    return self.expr(("T", "f", (kind[2][1],)), depth - 1)


SPECIAL_HOLES = {
    "mask": mask, "whole": whole, "float": floating, "same": same, "n": small, "two": power, "bit": bit, "flipped": flipped,
    "product": product, "outercolumn": outer_column, "outerrow": outer_row, "outerrowof": outer_row_of,
}


class Tensors(Base):
    """Makes expressions of tensors of a given kind and shape."""

    special_holes = dict(SPECIAL_HOLES)

    def broadcastable(self, kind):
        """Returns the type of a tensor that can be an operand beside one of type `kind`."""
        shape = kind[2]
        if not shape or self.chance(0.4):
            return kind
        choice = self.random()
        if choice < 0.3:
            return SCALAR
        if choice < 0.5:
            return ONE
        if choice < 0.75 or len(shape) < 2:
            return ("T", kind[1], shape[1:] if len(shape) > 1 else shape)
        return ("T", kind[1], (shape[0], 1) if choice < 0.88 else (1, shape[1]))

    def tensor(self, kind, depth):
        _, element, shape = kind
        if depth <= 0:
            return self.plain_tensor(kind)
        choice = self.random()
        if choice < 0.3:
            found = self.sources(kind)
            if found:
                return self.pick(found)
        if choice < 0.42 and depth > 1:
            found = self.call_of(kind, depth)
            if found:
                return found
        if element == "b":
            return self.fill(self.pick(TRUTH_FORMS), depth, kind)
        if element == "i":
            return self.fill(self.pick(WHOLE_FORMS), depth, kind)
        if choice < 0.6 and len(shape) < 2 or 1 in shape:
            return self.reduced(kind, depth)
        if choice < 0.65 and len(shape) == 2:
            return self.fill(self.pick(MATRIX_FORMS), depth, kind)
        if choice < 0.73 and shape:
            return self.fill(self.pick(RANKED_FORMS), depth, kind)
        return self.fill(self.pick(FLOAT_FORMS), depth, kind)

    def plain_tensor(self, kind):
        """Returns a variable, or an expression with a single operator on one."""
        found = self.sources(kind)
        if found:
            return self.pick(found)
        _, element, shape = kind
        if shape == ():
            return {"f": f"torch.tensor({self.pick(('0.5', '1.5', '-2.0'))})", "i": "torch.tensor(3)",
                    "b": "torch.tensor(True)"}[element]
        if shape == (1,):
            return {"f": f"torch.tensor([{self.pick(('0.5', '1.5', '-2.0'))}])", "i": "torch.tensor([3])",
                    "b": "torch.tensor([False])"}[element]
        if element == "b":
            return f"({self.plain_tensor(('T', 'f', shape))} > {self.pick(('0', '0.5', '-1'))})"
        if element == "i":
            return f"{self.plain_tensor(('T', 'f', shape))}.gt({self.pick(('0', '1'))}).long()"
        base = self.sources(X)
        base = self.pick(base) if base else "GX"  # a function without sizes: the global tensor
        if shape == NM:
            return base
        flat = {("m", "n"): "{}.t()", ("m",): "{}[0]", ("n",): "{}[:, 0]", ("n", 1): "{}[:, :1]", (1, "m"): "{}[:1]",
                ("m", 1): "{}.t()[:, :1]", (1, "n"): "{}.t()[:1]", ("n", "n"): "({0} @ {0}.t()).clamp(-8, 8)",
                ("m", "m"): "({0}.t() @ {0}).clamp(-8, 8)"}[shape]
        return flat.format(base)

    def reduced(self, kind, depth):
        """Returns a reduction or a view that takes a dimension away or adds one."""
        shape = kind[2]
        other = self.pick(NM)
        if shape == ():
            inner = self.pick((X, VECTOR, COLUMN, X))
            form = self.pick(("{}.sum()", "{}.sum()", "{}.max()", "{}.min()", "{}.mean()", "torch.sum({})", "{}.abs().sum()",
                              "{}[0, 0]" if inner == X else "{}[0]", "{}[-1].sum()", "{}.reshape(-1)[0]",
                              "{}.prod().clamp(-4, 4)", "{}.amax()"))
        elif shape == (1,):
            inner = self.pick((SCALAR, VECTOR, SCALAR))
            form = self.pick(("{}.reshape(1)" if inner == SCALAR else "{}.sum(0, keepdim=True)", "{}.reshape(-1)[:1]",
                              "{}.reshape(-1)[-1:]", "{}.reshape(-1)[0][None]"))
        elif len(shape) == 1:
            size = shape[0]
            if self.chance(0.5):
                inner = ("T", "f", (other, size))
                form = self.pick(("{}.sum(0)", "{}[0]", "{}[-1]", "{}.amax(0)", "{}.max(0).values", "{}.unbind(0)[0]",
                                  "{}.select(0, 0)", "{}.mean(0)", "torch.max({}, 0)[0]", "{}.min(dim=0)[0]",
                                  "{}.unbind()[-1]", "next(iter({}))", "{}.cumsum(0)[-1]"))
            elif self.chance(0.6):
                inner = ("T", "f", (size, other))
                form = self.pick(("{}.sum(1)", "{}[:, 0]", "{}.sum(-1)", "{}.sum(dim=1)", "{}.amax(1)", "{}[..., -1]",
                                  "{}.mean(1)", "{}.min(1).values", "{}.any(1).float()"))
            else:
                inner = ("T", "f", (1, size))
                form = self.pick(("{}.squeeze(0)", "{}[0]", "{}.reshape(-1)", "{}.flatten()", "{}[0, :]"))
        elif shape[1] == 1:
            inner = self.pick((("T", "f", (shape[0],)), ("T", "f", (shape[0], other))))
            forms = ("{}.unsqueeze(1)", "{}[:, None]", "{}.unsqueeze(-1)", "{}.reshape(-1, 1)") if len(inner[2]) == 1 else \
                ("{}.sum(1, keepdim=True)", "{}.amax(1, keepdim=True)", "{}[:, :1]", "{}[:, -1:]", "{}.narrow(1, 0, 1)")
            form = self.pick(forms)
        else:
            inner = self.pick((("T", "f", (shape[1],)), ("T", "f", (other, shape[1]))))
            forms = ("{}.unsqueeze(0)", "{}[None]", "{}.reshape(1, -1)", "{}[None, :]") if len(inner[2]) == 1 else \
                ("{}.sum(0, keepdim=True)", "{}.amax(0, keepdim=True)", "{}[:1]", "{}[-1:]", "{}.narrow(0, 0, 1)")
            form = self.pick(forms)
        return form.format(self.expr(inner, depth - 1))

    def new_tensor(self, kind, depth):
        """Returns an expression whose value shares no storage with anything, as a source of writes."""
        text = self.expr(kind, depth)
        return self.pick(("({} * 1)", "({} + 0)", "{}.clone()", "(-{})")).format(f"({text})") if kind[1] != "b" \
            else f"({text}).clone()"
