# expect: ({'one': 11, 'three': 3}, 2, 2, True, False, None, -1, 3)
def main():
    d = {'one': 1, 'two': 2}
    d['three'] = 3
    d['one'] = 11
    gone = d.pop('two')
    return d, gone, len(d), 'one' in d, 'two' in d, d.get('nine'), d.get('nine', -1), d['three']
