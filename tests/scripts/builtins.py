# Functions over the builtin operators; their results are in builtins_script_test.cpp.
class Pair:
    def __init__(self, key: int, name: str):
        self.key = key
        self.name = name

    def __lt__(self, other: 'Pair') -> bool:
        return self.key < other.key

def sort_objects(n: int):
    pairs = [Pair(3, "c"), Pair(1, "a"), Pair(2, "b"), Pair(1, "z")]
    pairs.sort()
    up = [p.name for p in pairs]
    pairs.sort(reverse=True)
    down = [p.name for p in pairs]
    return up, down, [p.key for p in sorted(pairs)]

def numbers(x: int, y: float):
    return x // 2, x % 3, -x // 2, -x % 3, x / 2, x ** 2, y // 2, y % 3, -y % 3, divmod(x, 4), abs(-x), int(y), float(x), bool(x), round(y), x << 2, x >> 1, x & 5, x | 8, x ^ 3, min(x, 3), max(x, y), min([4, 2]), x < y, x == y, complex(x, y)

def maths(x: int, y: float):
    return math.sqrt(y), math.floor(y), math.ceil(y), math.log(y), math.log(y, 2.0), math.exp(1.0), math.pow(y, 2.0), math.gcd(12, 18), math.factorial(5), math.pi, math.isnan(y), math.copysign(1.0, -y), math.fmod(y, 2.0), math.modf(y), math.frexp(y), math.ldexp(y, 3), math.atan2(y, 1.0), math.degrees(y), math.fabs(-y), math.inf

def strings(s: str):
    return s.upper(), s.split(","), s.replace("a", "b"), s[1], s[1:3], s[::-1], s + s, len(s), s.find("b"), "-".join(["x", "y"]), s.startswith("a"), s.strip(), s.count("a"), "{} {}".format(s, 3), "%s %d" % (s, 3), f"{s}!", ord("a"), chr(98), hex(255), s == "abc", s < "b", str(3), str(2.5), str(None), str([1, 2]), s.center(9, "*"), s.title(), s.isdigit(), s.zfill(8), s.partition(",")

def lists(x: List[int]):
    y = x.copy()
    y.append(4)
    y.extend([5, 6])
    y.insert(0, 9)
    p = y.pop()
    y.remove(2)
    del y[0]
    y[0] = 7
    y += [1]
    z = y * 2
    y.reverse()
    return y, z, p, 7 in y, y.index(7), y.count(1), sum(y), any([True, False]), all([True]), sorted(y), y[-1], y[1:3], y[::2], len(y), x == y, [i * 2 for i in range(3)], list(range(2, 8, 3)), [1] + [2], max(y), list("ab")

def dicts(n: int):
    d = {"a": 1, "b": 2}
    d["c"] = n
    d.update({"z": 0})
    del d["b"]
    keys = [k for k in d]
    g = d.get("q")
    e = {k: v * 2 for k, v in d.items()}
    return d, "a" in d, len(d), keys, list(d.values()), d.pop("a"), d.setdefault("m", 3), g, d.get("q", 8), e, dict([(1, 2)])

def tensors(n: int):
    t = torch.tensor([[1, 2], [3, 4]])
    return t, torch.tensor(2.5), torch.tensor([True]), t.dtype, t.device, t.is_cuda, t.requires_grad, int(t[0, 0]), float(torch.tensor(1.5)), bool(torch.tensor(0)), t.shape, t.ndim, torch.tensor([1.5, 2.5], dtype=torch.float64), t[1][0].item(), torch.as_tensor([1, 2])

def optional(x: Optional[int]):
    if x is None:
        return -1
    return torch.jit._unwrap_optional(x) + 1
