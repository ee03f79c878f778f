# expect error: the keys of a dict must have one type: expected int but found str
def main():
    return {1: 2, 'a': 3}
