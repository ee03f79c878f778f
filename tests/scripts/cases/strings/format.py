# as Python: PyTorch's format knows only {}
# expect: ('Hi Ada, 3 times', 'Ada 3 Ada', 'Ada has 3 items at 1.500000', '2.5')
def main():
    name = 'Ada'
    n = 3
    return 'Hi {}, {} times'.format(name, n), '{0} {1} {0}'.format(name, n), '%s has %d items at %f' % (name, n, 1.5), '{}'.format(2.5)
