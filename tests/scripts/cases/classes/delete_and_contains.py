# expect: (False, True)
class V:
    def __init__(self):
        self.d = {1: 2, 3: 4}
    def __delitem__(self, i: int):
        del self.d[i]
    def __contains__(self, i: int) -> bool:
        return i in self.d
def main():
    v = V()
    del v[1]
    return 1 in v, 3 in v
