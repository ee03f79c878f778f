# expect: ['15 562500', '6 563049', '15 1162500', '6 1781004', '6 1125000', '15 562500', '15 200391', '15 562500', '15 562500', '15 900000', '15 900000', '7 563049', '6 563049', '6 563049', '6 400000']
# torch.autocast: what is multiplied goes to bfloat16, what needs range or meets float32 back to it.
def inner(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b)

def show(t: torch.Tensor) -> str:
    return str(t.dtype) + ' ' + str(int(torch.round(t.double().sum() * 100000)))

def main():
    x = torch.arange(6.).reshape(2, 3) / 8
    w = torch.ones(3, 3) + 1 / 1024  # 1.0 in bfloat16
    b = torch.ones(3)
    out: List[str] = []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.mm(x, w)
        out.append(show(y))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            out.append(show(torch.mm(x, w)))
        out.append(show(torch.addmm(b, x, w)))
        out.append(show(torch.exp(y)))
        out.append(show(y + y))
        out.append(show(torch.relu(y)))
        out.append(show(torch.softmax(y, -1)))
        out.append(show(inner(x, w)))
        if x.size(0) > 1:
            out.append(show(torch.matmul(x, w)))
        for i in range(2):
            out.append(show(torch.mv(w, b)))
        out.append(show(torch.mm(x.double(), w.double())))
    out.append(show(torch.mm(x, w)))
    with torch.autocast("cuda", dtype=torch.float16):
        out.append(show(torch.mm(x, w)))
    with torch.cpu.amp.autocast(dtype=torch.float16):
        out.append(show(torch.ones(2, 2).to(torch.float16) * torch.ones(2, 2)))
    return out
