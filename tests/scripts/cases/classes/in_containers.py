# expect: ([0, 1, 2, 33], [2], 33)
class Node:
    def __init__(self, value: int):
        self.value = value
        self.children: List[int] = []

def main():
    nodes: List[Node] = []
    for i in range(4):
        n = Node(i)
        if i > 0:
            nodes[i - 1].children.append(i)
        nodes.append(n)
    by_name: Dict[str, Node] = {'last': nodes[3]}
    by_name['last'].value = 33
    return [n.value for n in nodes], nodes[1].children, by_name['last'].value
