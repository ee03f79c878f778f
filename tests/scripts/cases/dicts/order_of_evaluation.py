# expect: (['a', 'b', 'c', 'd', 'e', 'f', 'g'], {'a': 'b', 'c': 'd'}, {'e': 1, 'x': 1})
def note(log: List[str], name: str) -> str:
    log.append(name)
    return name


def main():
    log: List[str] = []
    plain = {note(log, "a"): note(log, "b"), note(log, "c"): note(log, "d")}
    counted: Dict[str, int] = {note(log, "e"): len(note(log, "f")), "x": len(note(log, "g"))}
    return log, plain, counted
