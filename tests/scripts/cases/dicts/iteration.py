# expect: ([0, 1, 4, 9], '0123', [0, 1, 4, 9], ['0', '1', '2', '3'], [0, 1, 4, 9])
def main():
    d: Dict[int, str] = {}
    for i in range(4):
        d[i * i] = str(i)
    keys: List[int] = []
    text = ''
    for k in d:
        keys.append(k)
    for k, v in d.items():
        text += v
    return keys, text, list(d.keys()), list(d.values()), [k for k in d.keys()]
