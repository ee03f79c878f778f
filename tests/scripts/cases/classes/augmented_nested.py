# expect: ([4, 10], [[1, 14], [3]], {'x': [-3, 2]})
class B:
    def __init__(self):
        self.v = [1]
class A:
    def __init__(self):
        self.b = B()
def main():
    a = A()
    a.b.v[0] += 3
    a.b.v += [9]
    l = [[1, 2], [3]]
    l[0][1] *= 7
    d = {'x': [1, 2]}
    d['x'][0] -= 4
    t = (a, 3)
    t[0].b.v[1] += 1
    return a.b.v, l, d
