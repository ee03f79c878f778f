# as Python: PyTorch's complex() takes no string
# expect: [(1+2j), (-3.5+0j), (2000-0.015j), 1j, -1j, (1-1j), 100000j, (nan+0j), (-inf+infj), (4+0j)]
def main():
    return [complex(s) for s in ['1+2j', ' -3.5 ', '2e3-1.5E-2J', 'j', '-j', '(1-j)', '1e5j', 'nan', '-inf+infj', '+4']]
