# expect: ([tensor([[2.0000, 4.0000],
# expect:         [0.5000, 1.0000]]), tensor([[2.0000, 4.0000],
# expect:         [0.5000, 1.0000]]), tensor([[2.0000, 4.0000],
# expect:         [0.5000, 1.0000]])], [tensor([[2.0000, 4.0000],
# expect:         [0.5000, 1.0000]]), tensor([[1., 0.],
# expect:         [0., 1.]])], [tensor([[0., 0.],
# expect:         [0., 1.]]), tensor([[nan, nan],
# expect:         [nan, nan]]), tensor(inf)], [tensor([[-1.,  1.],
# expect:         [-1.,  1.]]), tensor(-2.)], (tensor([[2.0000, 4.0000],
# expect:         [0.5000, 0.0000]]), tensor([2, 2], dtype=torch.int32), tensor(2, dtype=torch.int32)), (tensor([]), tensor([], size=(0, 2, 2)), tensor([], size=(0, 2, 2))), (tensor([], size=(2, 0, 3)), tensor([], size=(2, 0), dtype=torch.int32), tensor([0, 0], dtype=torch.int32)))
def main():
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    square = torch.tensor([[math.inf, 1.0], [2.0, 1.0]])
    return (
        [torch._linalg_det(a)[1], torch._linalg_det(a.t())[1], torch._linalg_slogdet(a)[2]],
        [torch._linalg_solve_ex(a, a)[1], torch._linalg_solve_ex(a, a, left=False)[0]],
        [torch.linalg.inv(square), torch.linalg.inv_ex(torch.zeros(2, 2))[0], torch.slogdet(square)[1]],
        [torch.linalg.solve(a.unsqueeze(0).repeat(2, 1, 1), torch.ones(2, 2)), torch.det(a)],
        torch._lu_with_info(singular),
        torch.linalg.lu(torch.empty(0, 2, 2), pivot=False),
        torch.linalg.lu_factor_ex(torch.empty(2, 0, 3), pivot=False),
    )
