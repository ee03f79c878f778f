# expect: ('tab\there', 'quote"s', 'back\\slash', 'raw\\n', 'line\nbreak', 'A', 'joined text', 'three\nlines')
def main():
    return 'tab\there', "quote\"s", 'back\\slash', r'raw\n', 'line\nbreak', '\x41', 'joined ' 'text', """three
lines"""
