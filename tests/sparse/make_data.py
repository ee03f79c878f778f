"""Writes tests/sparse/data with PyTorch 1.13: sparse tensors, and what they stand for."""

import os

import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


class Holder(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x):
        return torch.mm(self.weight, x)


torch.manual_seed(5)
os.makedirs(OUT, exist_ok=True)
dense = torch.randn(4, 6) * (torch.rand(4, 6) > 0.6)
tensors = {
    "dense": dense,
    "coo": dense.to_sparse(),
    "uncoalesced": torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 2]], [1.0, 2.0, 3.0], (4, 6)),
    "csr": dense.to_sparse_csr(),
}
torch.save(tensors, os.path.join(OUT, "tensors.pt"))
torch.jit.save(torch.jit.script(Holder(dense.to_sparse())), os.path.join(OUT, "module.pt"))
