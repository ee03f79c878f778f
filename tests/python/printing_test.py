"""set_printoptions: what tensors look like."""

import unittest

from testing import Case, needs_pytorch
from wick import torch


class PrintOptions(Case):
    def tearDown(self):
        torch.set_printoptions(profile="default")

    def test_precision(self):
        torch.set_printoptions(precision=2)
        self.assertEqual(repr(torch.tensor([1.23456, 2.0])), "tensor([1.23, 2.00])")
        torch.set_printoptions(profile="default")
        self.assertEqual(repr(torch.tensor([1.23456, 2.0])), "tensor([1.2346, 2.0000])")

    def test_notation(self):
        torch.set_printoptions(sci_mode=True)
        self.assertEqual(repr(torch.tensor([1.5])), "tensor([1.5000e+00])")
        torch.set_printoptions(sci_mode=False)
        self.assertEqual(repr(torch.tensor([1e-5, 1.0])), "tensor([    0.0000,     1.0000])")
        torch.set_printoptions()
        self.assertEqual(repr(torch.tensor([1e-5, 1.0])), "tensor([1.0000e-05, 1.0000e+00])")

    def test_cut(self):
        torch.set_printoptions(threshold=5, edgeitems=1)
        self.assertEqual(repr(torch.arange(9)), "tensor([0,  ..., 8])")
        torch.set_printoptions(profile="full")
        self.assertEqual(repr(torch.arange(2000)).count("..."), 0)

    def test_wrong_options(self):
        for wrong in (
            {"profile": "long"}, {"precision": -1}, {"precision": 1000}, {"linewidth": 2.5},
            {"sci_mode": 3}, {"edgeitems": "a"},
        ):
            with self.assertRaises(ValueError, msg=str(wrong)):
                torch.set_printoptions(**wrong)
        self.assertEqual(repr(torch.tensor([0.5])), "tensor([0.5000])")

    @needs_pytorch
    def test_as_pytorch(self):
        import torch as pytorch

        numbers = [torch.arange(60.0).view(3, 20) / 7, torch.arange(12), torch.tensor(0.00012)]
        numbers += [torch.arange(600.0).view(2, 3, 100) * 1e5, torch.tensor([1.0, 2.0])]
        options = [
            {"precision": 1}, {"precision": 8}, {"linewidth": 40}, {"linewidth": 200},
            {"threshold": 10}, {"threshold": 10, "edgeitems": 2}, {"profile": "short"},
            {"profile": "full"}, {"sci_mode": True}, {"sci_mode": False}, {},
        ]
        for chosen in options:
            for namespace in (torch, pytorch):
                namespace.set_printoptions(profile="default")
                namespace.set_printoptions(**chosen)
            for t in numbers:
                expected = repr(pytorch.from_numpy(t.numpy()))
                with self.subTest(options=chosen, shape=tuple(t.shape)):
                    self.assertEqual(repr(t), expected)
        pytorch.set_printoptions(profile="default")


if __name__ == "__main__":
    unittest.main()
