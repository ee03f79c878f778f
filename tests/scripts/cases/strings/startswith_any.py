# as Python: PyTorch's take one string
# expect: (True, True, False, True, True, True)
def main():
    s = 'archive.tar.gz'
    return (s.startswith(('ab', 'ar')), s.endswith(('.zip', '.gz')), s.endswith(('.zip', '.tar')),
            s.startswith(('tar', 'zip'), 8), s.endswith(('tar', 'zip'), 0, 11), 'a'.startswith(('', 'b')))
