# as Python: PyTorch's scripts take no booleans beside tensors
# expect: (tensor([2, 3, 0], dtype=torch.uint8), tensor([2, 3, 0], dtype=torch.uint8), tensor([0.5000, 3.0000], dtype=torch.float16), tensor([0., 0.], dtype=torch.float16), tensor([1.0000, 0.5000, 0.0039]), tensor([ True, False]), tensor([True, True]), tensor([ True, False]), tensor([False,  True,  True]), tensor([ True, False, False]), tensor([ True, False, False]), tensor([False,  True]), tensor([  1,   2, 255], dtype=torch.uint8), tensor([  1,   2, 255], dtype=torch.uint8), tensor([0, 0, 0], dtype=torch.uint8), tensor([True, True]), tensor([ True, False]))
def main():
    bytes = torch.tensor([1, 2, 255], dtype=torch.uint8)
    bools = torch.tensor([True, False])
    halves = torch.tensor([0.5, 3.0], dtype=torch.float16)
    return (True + bytes, bytes + True, True * halves, halves * False, True / bytes,
            True & bools, bools | True, False ^ bools, True < bytes, bytes <= True, bytes == True, bools != True,
            bytes ** True, bytes // True, bytes % True, True + bools, True * bools)
