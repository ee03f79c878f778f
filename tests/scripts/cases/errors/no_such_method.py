# expect error: 'List[int]' object has no attribute or method 'apend'; did you mean 'append'?
def main():
    return [1].apend(2)
