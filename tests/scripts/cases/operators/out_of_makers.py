# expect: ([tensor([4, 4, 3]), tensor([4, 3, 4]), tensor([ 1.2645, -0.6874,  0.1604]), tensor([ 0.0000,  0.2500, -0.5000, -0.2500]), tensor([0.0000, 0.5000, 1.0000])], tensor([[5., 6.]]), tensor([[ 0.2100, -0.2100]]), tensor([[-0.5232,  0.5232]]))
def main():
    torch.manual_seed(0)
    whole = torch.zeros(3, dtype=torch.int64)
    real = torch.zeros(3)
    drawn = [torch.randint(5, [3], out=whole).clone(), torch.randint(2, 9, [3], out=whole).clone()]
    drawn.append(torch.normal(0.0, 1.0, [3], out=real))
    drawn.append(torch.fft.fftfreq(4, out=torch.zeros(4)))
    drawn.append(torch.fft.rfftfreq(4, 0.5, out=torch.zeros(3)))
    x = torch.tensor([[3.0, 1.0]])
    put = torch._index_put_impl_(x.clone(), [torch.tensor([0])], torch.tensor([5.0, 6.0]))
    y = torch.softmax(x, 1)
    return drawn, put, torch._softmax_backward_data(x, y, 1, torch.float32), torch._log_softmax_backward_data(x, y.log(), 1, torch.float32)
