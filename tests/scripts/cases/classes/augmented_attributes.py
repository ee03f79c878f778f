# expect: (14, [11, 2, 3, 3], {'a': 7.0}, tensor([ 3., 18.,  1.]), 'qw', 3.5)
class A:
    def __init__(self):
        self.x = 1
        self.l = [1, 2, 3]
        self.d = {'a': 1.0}
        self.t = torch.zeros(3)
        self.s = 'q'
        self.f = 7.0
def main():
    a = A()
    a.x += 2
    a.x *= 5
    a.x -= 1
    a.l += [4]
    a.l[0] += 10
    a.l[-1] -= 1
    a.d['a'] += 2.5
    a.d['a'] *= 2
    a.t += 1
    a.t[1] += 5
    a.t[0:2] *= 3
    a.s += 'w'
    a.f /= 2
    return a.x, a.l, a.d, a.t, a.s, a.f
