# expect: (tensor([[[ 1.0000e+00, -7.0000e-09,  1.0000e-09],
# expect:          [ 9.0000e-09,  1.0000e+00, -4.0000e-09],
# expect:          [-5.0000e-09,  6.0000e-09,  1.0000e+00]],
# expect: 
# expect:         [[ 1.0000e+00, -7.0001e-05,  1.0002e-05],
# expect:          [ 9.0003e-05,  1.0000e+00, -4.0002e-05],
# expect:          [-5.0000e-05,  6.0005e-05,  1.0001e+00]],
# expect: 
# expect:         [[ 1.0030e+00, -7.0144e-03,  1.0196e-03],
# expect:          [ 9.0324e-03,  1.0020e+00, -4.0155e-03],
# expect:          [-5.0004e-03,  6.0476e-03,  1.0080e+00]],
# expect: 
# expect:         [[ 1.0607e+00, -2.2014e-01,  4.9204e-02],
# expect:          [ 2.9715e-01,  1.0191e+00, -1.3314e-01],
# expect:          [-1.4720e-01,  2.2442e-01,  1.2552e+00]],
# expect: 
# expect:         [[ 9.1274e-01, -7.1493e-01,  3.5363e-01],
# expect:          [ 1.1192e+00,  6.6733e-01, -5.1263e-01],
# expect:          [-3.6842e-01,  1.1189e+00,  1.9522e+00]],
# expect: 
# expect:         [[-9.7308e-02, -7.3397e-01,  1.3796e+00],
# expect:          [ 1.9572e+00, -9.2836e-01, -9.4708e-01],
# expect:          [ 1.9671e-01,  3.1943e+00,  3.1071e+00]],
# expect: 
# expect:         [[ 1.9211e+01,  2.3923e+01,  6.4620e+01],
# expect:          [ 2.3336e+01, -1.6131e+01, -1.4492e+01],
# expect:          [ 5.5568e+01,  1.1641e+02,  1.4517e+02]],
# expect: 
# expect:         [[ 1.6448e+04,  2.2455e+04,  3.0966e+04],
# expect:          [-1.6997e+03,  1.8804e+02, -1.3143e+03],
# expect:          [ 3.5367e+04,  4.9521e+04,  7.2258e+04]]]), tensor([[[ 0.9127, -0.7149,  0.3536],
# expect:          [ 1.1192,  0.6673, -0.5126],
# expect:          [-0.3684,  1.1189,  1.9522]],
# expect: 
# expect:         [[ 2.9338,  9.6933,  6.4094],
# expect:          [-6.2658, -0.1215,  2.3128],
# expect:          [11.3319,  7.3755, 12.3968]]], dtype=torch.float64), tensor([[nan, nan],
# expect:         [nan, nan]]))
# One norm for each degree of the polynomial, and two that are halved first.
def main():
    a = torch.tensor([[0.3, -0.7, 0.1], [0.9, 0.2, -0.4], [-0.5, 0.6, 0.8]])
    out: List[Tensor] = []
    for norm in [1e-8, 1e-4, 0.01, 0.3, 1.0, 2.0, 9.0, 20.0]:
        out.append(torch.matrix_exp(a * norm))
    batch = torch.linalg.matrix_exp(torch.stack([a, a * 5]).double())
    return torch.stack(out), batch, torch.matrix_exp(torch.full((2, 2), float("inf")))
