# expect: [(tensor([2, 2, 0, 2, 0, 0, 2, 2, 2, 0, 2, 0], dtype=torch.int32), [1, 4]), (tensor([2, 2, 0, 2, 0, 0, 2, 2, 2, 0, 2, 0], dtype=torch.int32), [1, 4]), (tensor([2, 2, 0, 2, 0, 0, 2, 2, 2, 0, 2, 0], dtype=torch.int32), [1]), (tensor([2, 2, 0, 2, 0, 0, 2, 2, 2, 0, 2, 0], dtype=torch.int32), [12, 1, 6, 2]), (tensor([2, 2, 0, 2, 0, 0, 2, 2, 2, 0, 2, 0], dtype=torch.int32), [1, 4]), (tensor([2, 2, 2, 0, 2, 0, 2, 2, 0, 0, 2, 0], dtype=torch.int32), [1, 3])]
def dropped(x: torch.Tensor) -> Tuple[torch.Tensor, List[int]]:
    torch.manual_seed(3)
    y = torch.nn.functional.dropout(x, 0.5, True)
    return y.reshape([-1]), y.stride()


def main():
    x = torch.ones([3, 4]).t()
    leaf = torch.ones([3, 4]).requires_grad_()
    results = [dropped(x), dropped(leaf.t()), dropped(torch.ones([1]).expand([12]))]
    results.append(dropped(torch.ones([1, 2, 2, 3]).contiguous(memory_format=torch.channels_last)))
    torch.manual_seed(3)
    y = x.clone()
    torch.dropout_(y, 0.5, True)
    results.append((y.reshape([-1]), y.stride()))
    kept = torch.autograd.grad([dropped(leaf.t())[0].sum()], [leaf])[0]
    assert kept is not None
    results.append((kept.reshape([-1]), kept.stride()))
    return [(r[0].int(), r[1]) for r in results]
