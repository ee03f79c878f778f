# expect: ([tensor([1., 1., 0., 0.])], [tensor([nan, nan, nan, nan])], ([tensor([0.2500, 1.0000, 0.2500, 0.2500])], [tensor([0.2500, 1.0000, 0.2500, 0.2500])]), ([tensor(0.4472+0.8944j)], [tensor(0.4472+0.8944j)], [tensor(0.4472+0.8944j)]), ((tensor([1.]), False), (tensor([[1.],
# expect:         [1.]]), False), (tensor([[3.],
# expect:         [3.]]), True)), (tensor(1.), False))
def second_order(outs: List[torch.Tensor], x: torch.Tensor) -> Tuple[torch.Tensor, bool]:
    first = torch.autograd.grad(outs, [x], None, None, True)[0]
    assert first is not None
    return first.detach(), first.requires_grad


def main():
    x = torch.tensor([float("nan"), 1.0, -1.0, 0.0]).requires_grad_()
    relu = torch.autograd.grad([torch.relu(x).sum()], [x])
    pooled = torch.autograd.grad([torch.nn.functional.lp_pool1d(x[None, None], 1.5, 2).sum()], [x])
    number, weight = torch.tensor(0.25).requires_grad_(), torch.tensor([0.25]).requires_grad_()
    prelu = torch.autograd.grad([torch.prelu(x, number).sum()], [x]), torch.autograd.grad([torch.prelu(x, weight).sum()], [x])
    z = torch.complex(torch.tensor(1.0), torch.tensor(2.0)).requires_grad_()
    turned = torch.autograd.grad([z.mH.abs()], [z]), torch.autograd.grad([z.H.abs()], [z]), torch.autograd.grad([z.mT.abs()], [z])
    one, few = torch.tensor([3.0]).requires_grad_(), torch.tensor([[3.0], [2.0]]).requires_grad_()
    products = second_order([one.cumprod(0).sum()], one), second_order([few.cumprod(1).sum()], few), second_order([few.cumprod(0).sum()], few)
    alone = torch.tensor(3.0).requires_grad_()
    return relu, pooled, prelu, turned, products, second_order([alone.prod()], alone)
