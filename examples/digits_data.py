"""Draws the images that the digit model digits.pt is trained with, and makes its initial weights. A script for
torchscript-cli, which needs no data set: the images are a font of 5x7 points, stretched, moved, slanted, blurred
and with noise. They are no handwriting.

    torchscript-cli run digits_data.py --input 8000 --seed 1 --output train.pt
    torchscript-cli run digits_data.py --function initial_weights --seed 0 --output initial.pt
"""


def font() -> Tensor:
    rows = ["01110100011001110101110011000101110", "00100011000010000100001000010001110",
            "01110100010000100010001000100011111", "11111000100010000010000011000101110",
            "00010001100101010010111110001000010", "11111100001111000001000011000101110",
            "00110010001000011110100011000101110", "11111000010001000100010000100001000",
            "01110100011000101110100011000101110", "01110100011000101111000010001001100"]
    points: List[float] = []
    for row in rows:
        for point in row:
            points.append(1.0 if point == "1" else 0.0)
    return torch.tensor(points).view(10, 1, 7, 5)


def main(count: int) -> Dict[str, Tensor]:
    """`count` images, float32 [count, 1, 28, 28] in 0..1, and the digits that they show."""
    labels = torch.randint(0, 10, [count])
    theta = torch.zeros(count, 2, 3)
    scale = 1.5 + 0.7 * torch.rand(count)
    theta[:, 0, 0] = scale * 1.25
    theta[:, 1, 1] = scale
    theta[:, 0, 1] = 0.6 * (torch.rand(count) - 0.5)
    theta[:, :, 2] = 0.5 * (torch.rand(count, 2) - 0.5)
    grid = torch.nn.functional.affine_grid(theta, [count, 1, 28, 28], align_corners=False)
    images = torch.nn.functional.grid_sample(font()[labels], grid, align_corners=False)
    images = (images + 0.15 * torch.randn(images.shape)).clamp(0.0, 1.0)
    return {"x": images, "target": labels}


def uniform(shape: List[int], inputs: int) -> Tensor:
    return (2.0 * torch.rand(shape) - 1.0) / float(inputs) ** 0.5


def initial_weights() -> Dict[str, Tensor]:
    """As PyTorch's layers begin."""
    state: Dict[str, Tensor] = {}
    for name, outputs, inputs in [("conv_layers.0", 8, 1), ("conv_layers.3", 16, 8), ("conv_layers.5", 16, 16)]:
        state[name + ".weight"] = uniform([outputs, inputs, 3, 3], 9 * inputs)
        state[name + ".bias"] = uniform([outputs], 9 * inputs)
    state["conv_layers.1.weight"] = torch.ones(8)
    state["conv_layers.1.bias"] = torch.zeros(8)
    state["conv_layers.1.running_mean"] = torch.zeros(8)
    state["conv_layers.1.running_var"] = torch.ones(8)
    state["conv_layers.1.num_batches_tracked"] = torch.tensor(0)
    state["fc_layers.1.weight"] = uniform([10, 400], 400)
    state["fc_layers.1.bias"] = uniform([10], 400)
    return state
