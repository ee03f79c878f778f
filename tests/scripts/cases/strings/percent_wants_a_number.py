# expect error: %d requires a number
def main():
    return '%d' % 'text'
