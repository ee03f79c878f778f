"""Loads and runs exported programs that lie, each within limits of time and memory.

Each is refused with an error that names the file, raises when it runs, or computes something. InternalError, TypeError (the application's
mistake, not the file's) and anything that takes long or much memory are failures, and a crash ends the test.
"""
import copy
import json
import os
import random
import resource
import signal
import sys
import tarfile
import tempfile
import threading
import time

import wick
from wick import torch
import packages

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 5
MEMORY = 768 << 20  # beyond what the process had at its start
PROPER = (wick.LoadError, wick.CompileError, RuntimeError)

# These take the place of values in the systematic part.
SUBSTITUTES = (
    None, True, False, 0, 1, -1, 2**31, 2**63 - 1, -2**63, 2**64 - 1, 10**30, 1e308, "Infinity", "", "x", "../../x", "self", "class", "a\nb", "a'b\"c\\", "\x00", "é", "L['x']",
    [], {}, [None], [[]], {"as_int": 10**12}, {"as_int": -1}, {"as_none": True}, {"as_tensor": {"name": "x"}}, {"as_sym_int": {"as_name": "x"}}, {"as_ints": [2**62] * 4},
    {"as_string": "x"}, {"as_tensors": [{"name": "x"}] * 3}, {"as_float": "NaN"}, {"as_expr": {"expr_str": "Symbol('s0')", "hint": None}}, {"as_graph": {"name": "g", "graph": {}}},
)


class Trial:
    """Loads packages under limits, and keeps the failures."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "hostile.pt2")
        self.failures = []
        self.counts = {}
        self.memory = peak()
        self.deadline = None  # of the run
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        """Interrupts a run whose time is over, as a user would."""
        while True:
            time.sleep(0.1)
            deadline = self.deadline
            if deadline and time.monotonic() > deadline:
                self.deadline = None
                os.kill(os.getpid(), signal.SIGINT)

    def run(self, name, data, arguments, must=None):
        """`must` is a text that the error has."""
        with open(self.path, "wb") as file:
            file.write(data)
        start = time.process_time()
        verdict = "ran"
        why = None
        try:
            module = wick.jit.load(self.path)
            verdict = "raised"
            # A program may loop without end.
            self.deadline = time.monotonic() + 0.5
            for method, args, kwargs in arguments:
                getattr(module, method)(*args, **kwargs)
            self.deadline = None
            verdict = "ran"
            why = f"expected an error with '{must}'" if must is not None else None
        except KeyboardInterrupt:
            verdict = "ended"
        except Exception as error:
            self.deadline = None
            if verdict == "ran":
                verdict = "refused"
            text = str(error)
            if isinstance(error, wick.InternalError) or not isinstance(error, PROPER) and (verdict == "refused" or not isinstance(error, (TypeError, ValueError, ZeroDivisionError, IndexError, NotImplementedError))):
                why = f"{type(error).__name__}: {text}"
            elif verdict == "refused" and "hostile.pt2" not in text:
                why = f"the message does not name the file: {text}"
            elif must is not None and must not in text:
                why = f"expected an error with '{must}', found: {text}"
            elif verdict == "refused" and len(text) > 20_000:
                why = f"a message of {len(text)} characters: {text[:100]}"
        seconds = time.process_time() - start
        if seconds > SECONDS:
            why = f"takes {seconds:.1f} s; {why}"
        if peak() - self.memory > MEMORY:
            why = f"takes {peak() - self.memory >> 20} MB; {why}"
            self.memory = peak()
        self.counts[verdict] = self.counts.get(verdict, 0) + 1
        if why:
            self.failures.append(name)
            print(f"{name}: {' '.join(why.split())[:400]}", flush=True)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def places(value, path=()):
    """The paths to all values within a JSON value."""
    if isinstance(value, dict):
        for key in value:
            yield path + (key,)
            yield from places(value[key], path + (key,))
    elif isinstance(value, list):
        for i in range(len(value)):
            yield path + (i,)
            yield from places(value[i], path + (i,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def systematic(trial, name, records, arguments, share):
    """Puts each of SUBSTITUTES in place of each value, takes away and repeats members; one in `share` of these is tried."""
    generator = random.Random(name)
    for record in [record for record in records if record.endswith(".json")]:
        original = json.loads(records[record])
        everywhere = [path for path in places(original) if path[-1] not in ("nn_module_stack", "torch_fn", "stack_trace")]
        for path in everywhere:
            for i in range(len(SUBSTITUTES) + 4):
                if generator.random() * share >= 1:
                    continue
                changed = copy.deepcopy(original)
                parent = at(changed, path[:-1])
                key = path[-1]
                if i < len(SUBSTITUTES):
                    parent[key] = SUBSTITUTES[i]
                elif i == len(SUBSTITUTES):
                    del parent[key]
                elif isinstance(parent, list):
                    parent.insert(key, copy.deepcopy(parent[key]) if i % 2 else generator.choice(parent))
                elif isinstance(parent[key], str):
                    parent[key] = at(original, generator.choice(everywhere))
                else:
                    parent[key + "x"] = parent.pop(key)
                what = f"{name}: {record}: {'.'.join(map(str, path))}: {i}"
                trial.run(what, packages.write(records | {record: json.dumps(changed).encode()}), arguments)


class Base:
    """A program of the kit, whose parts each case changes in a copy."""

    def __init__(self, folder, name):
        self.records = packages.read(os.path.join(folder, name, "module.pt2"))
        content = torch.load(os.path.join(folder, name, "io.pt"))
        self.calls = [(call.get("method", "forward"), call["args"], call["kwargs"]) for call in content["calls"]]

    def program(self):
        return packages.program(self.records)

    def package(self, program=None, **more):
        records = self.records | more
        if program is not None:
            records["models/model.json"] = program if isinstance(program, bytes) else json.dumps(program).encode()
        return packages.write(records)

    def weights(self, change):
        record = "data/weights/model_weights_config.json"
        config = json.loads(self.records[record])
        change(config["config"])
        return packages.write(self.records | {record: json.dumps(config).encode()})


def nodes(program):
    return program["graph_module"]["graph"]["nodes"]


def with_trees(program, in_spec=None, out_spec=None, names=None):
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    signature["in_spec"] = in_spec or signature["in_spec"]
    signature["out_spec"] = out_spec or signature["out_spec"]
    signature["forward_arg_names"] = names or signature["forward_arg_names"]
    return program


LEAF = '{"type": null, "context": null, "children_spec": []}'


def spec(kind, children, context="null"):
    return '{"type": "builtins.%s", "context": %s, "children_spec": [%s]}' % (kind, json.dumps(context), ", ".join(children))


def arguments_of(*children):
    return "[1, " + spec("tuple", [spec("tuple", children), spec("dict", [], "[]")]) + "]"


def weights_that_lie(trial, base):
    def entry(**changes):
        def change(config):
            first = next(iter(config.values()))
            for key, value in changes.items():
                (first if key in first else first["tensor_meta"])[key] = value
        return base.weights(change)
    ints = [{"as_int": n} for n in (2**40, 2**40)]
    for name, changes in {
        "sizes": {"sizes": [{"as_int": 2**62}] * 4}, "many sizes": {"sizes": [{"as_int": 1}] * 100_000, "strides": [{"as_int": 1}] * 100_000},
        "strides": {"strides": [{"as_int": 2**62}] * 4}, "negative strides": {"strides": [{"as_int": -1}] * 4}, "strides of zero": {"sizes": ints, "strides": [{"as_int": 0}] * 2},
        "fewer strides": {"strides": []}, "offset": {"storage_offset": {"as_int": 2**62}}, "negative offset": {"storage_offset": {"as_int": -4}},
        "path outside": {"path_name": "../../models/model.json"}, "absolute path": {"path_name": "/etc/passwd"}, "path of another record": {"path_name": "../weights/weight_0"},
        "path of the list": {"path_name": "model_weights_config.json"}, "empty path": {"path_name": ""}, "dtype": {"dtype": 99}, "sparse": {"layout": 1},
        "pickle": {"use_pickle": True}, "device": {"device": {"type": "\x1b[2J", "index": -5}}, "device number": {"device": {"type": "cuda", "index": 2**40}},
        "no tensor": {"tensor_meta": None}, "symbolic size": {"sizes": [{"as_expr": {"expr_str": "Symbol('s0')", "hint": None}}] * 4},
    }.items():
        trial.run(f"weights: {name}", entry(**changes), base.calls, must="" if name != "path of the list" else None)
    for count in (10, 20_000):  # many tensors in one record, of several dtypes
        def shared(config, count=count):
            first = next(iter(config.values()))
            for i in range(count):
                config[f"more.x{i}"] = copy.deepcopy(first) | {"path_name": "weight_0"}
                config[f"more.x{i}"]["tensor_meta"] |= {"dtype": 12, "sizes": [{"as_int": 1 + i % 100}], "strides": [{"as_int": 1}]}
        trial.run(f"weights: {count} share a record", base.weights(shared), base.calls)


def texts_of_sizes(trial, base):
    symbol = "Symbol('s0', positive=True, integer=True)"
    for name, text in {
        "deep": "Add(" * 5000 + symbol + ")" * 5000, "long": "Add(" + ", ".join([symbol] * 100_000) + ")", "open": "Add(" * 2000, "power": f"Pow({symbol}, Integer(1000000000))", "deep power": "Pow(" * 30 + symbol + ", Integer(8))" * 30,
        "large": "Integer(" + "9" * 4000 + ")", "least": "Mul(Integer(-9223372036854775808), Integer(-9223372036854775808), " + symbol + ")", "by zero": f"Mod({symbol}, Integer(0))",
        "offset": f"Add({symbol}, Integer(-9223372036854775808))", "quotes": "Symbol('s0\"\\n')", "statement": "Symbol('s0'); import os", "wide": "Max(" + ", ".join([symbol] * 90) + ")",
    }.items():
        program = base.program()
        for meta in program["graph_module"]["graph"]["tensor_values"].values():
            meta["sizes"] = [{"as_expr": {"expr_str": text, "hint": None}} for _ in meta["sizes"]]
        unknown = name in ("open", "power", "statement", "deep power")
        trial.run(f"size: {name}", base.package(program), base.calls, must="is an expression that is not known here" if unknown else None)
    sizes_of_later_arguments(trial, base)
    for name, guard in {
        "statement": "L['x'].size()[0] == 1\n    raise RuntimeError('injected')", "semicolon": "True; x", "call": "__import__('os').system('true')", "name": "self.training", "lambda": "(lambda: 1)()",
        "comment": "True # == 1", "quote": "L['x'\"].size()[0] == 1", "deep": "(" * 10_000 + "1" + ")" * 10_000, "signs": "-" * 16_000 + "1 == 1", "nots": "not " * 4000 + "True",
        "long": "True and " * 1800 + "True", "longer": "True and " * 100_000 + "True", "number": "1e99999 == 1" + "0" * 10_000, "attribute": "L['x'].__class__", "walrus": "(y := 1)", "argument": "L['nobody'] == 1",
        "index": "L['x'].size()[99999999999999999999] == 1", "zero": "1 // 0 == 1", "shift": "2 ** 2 ** 2 ** 2 ** 2 ** 2 == 1", "empty": "", "text": "'x' == 'x'",
    }.items():
        program = base.program()
        program["guards_code"] = [guard]
        trial.run(f"guard: {name}", base.package(program), base.calls)
    program = base.program()
    program["guards_code"] = ["True"] * 200_000
    trial.run("guards: many", base.package(program), base.calls, must="")
    program["guards_code"] = []
    program["range_constraints"] = {f"s{i}": {"min_val": -2**63, "max_val": 2**63 - 1} for i in range(100_000)}
    trial.run("ranges: many", base.package(program), base.calls)


def sizes_of_later_arguments(trial, base):
    """Sizes with several symbols, with such that other sizes tell, and such that none does: x has four, and is (2, 3, H, W) or the like."""
    def symbol(i):
        return f"Symbol('s{i}', positive=True, integer=True)"

    def case(name, sizes, must):
        program = base.program()
        graph = program["graph_module"]["graph"]
        given = next(spec["user_input"]["arg"]["as_tensor"]["name"] for spec in program["graph_module"]["signature"]["input_specs"] if "user_input" in spec)
        meta = graph["tensor_values"][given]
        meta["sizes"] = [{"as_expr": {"expr_str": size, "hint": None}} for size in sizes] + meta["sizes"][len(sizes):]
        trial.run(f"sizes: {name}", base.package(program), base.calls, must)
    x = base.calls[0][1][0]
    case("told later", [f"Add({symbol(1)}, Integer({x.shape[0] - x.shape[1]}))", symbol(1)], None)
    case("told later by one of two", [f"Add({symbol(0)}, {symbol(1)})", symbol(1)], None)
    case("wrong, and told later", [f"FloorDiv({symbol(1)}, Integer(1000))", symbol(1)], "Expected input at")
    case("square that is wrong", [f"Pow({symbol(1)}, Integer(2))", symbol(1)], "Expected input at" if x.shape[0] != x.shape[1] ** 2 else None)
    case("sum of two unknown", [f"Add({symbol(0)}, {symbol(1)})"], "cannot be checked, for no other size tells its symbols")
    case("square of an unknown", [f"Pow({symbol(0)}, Integer(2))"], "cannot be checked, for no other size tells its symbols")
    case("quotient of an unknown", [f"FloorDiv({symbol(0)}, Integer(2))"], "cannot be checked, for no other size tells its symbols")
    case("chain", [f"Add({symbol(i)}, {symbol(i + 1)})" for i in range(20_000)] + [symbol(20_000)], "")


def trees_that_lie(trial, base):
    deep = LEAF
    for _ in range(40):
        deep = spec("tuple", [deep])
    deeper = LEAF
    for _ in range(5000):
        deeper = spec("list", [deeper])
    key = "k" * 1_000_000
    cases = {
        "deep": arguments_of(deep), "deeper": arguments_of(deeper), "no leaves": arguments_of(), "many leaves": arguments_of(*[LEAF] * 50_000), "no spec": "x", "empty": "[]", "version": "[2, {}]", "array": "[1, []]",
        "leaf alone": f"[1, {LEAF}]", "dict alone": "[1, " + spec("dict", [], "[]") + "]", "keys": arguments_of(spec("dict", [LEAF], '["a", "b"]')), "equal keys": arguments_of(spec("dict", [LEAF] * 2, '["a", "a"]')),
        "keys of two types": arguments_of(spec("dict", [LEAF] * 2, '["a", 1]')), "keys nested": arguments_of(spec("dict", [LEAF], '[["a"]]')), "context": arguments_of(spec("dict", [LEAF], "{")),
        "long key": arguments_of(spec("dict", [spec("list", [spec("tuple", [])] * 2000 + [LEAF])], json.dumps([key]))), "empty lists": arguments_of(*[spec("list", [])] * 20_000, LEAF),
        "quoted keys": arguments_of(spec("dict", [LEAF], json.dumps(["'\"\n\\\x00{}"]))), "unknown class": arguments_of('{"type": "a.B\\n", "context": "[[1]]", "children_spec": [%s]}' % LEAF),
    }
    for name, text in cases.items():
        trial.run(f"tree of arguments: {name}", base.package(with_trees(base.program(), in_spec=text)), base.calls)
        trial.run(f"tree of results: {name}", base.package(with_trees(base.program(), out_spec=text)), base.calls)
    program = with_trees(base.program(), out_spec="[1, " + spec("tuple", [LEAF] + ['{"type": "collections.namedtuple", "context": "N", "children_spec": []}'] * 5000) + "]")
    program["graph_module"]["treespec_namedtuple_fields"] = {"N": {"field_names": []}}
    trial.run("named tuples: many", base.package(program), base.calls)
    # Many tuples of one class with a long name for its field.
    graph = program["graph_module"]
    count = 3000
    graph["treespec_namedtuple_fields"] = {"N": {"field_names": ["f" * 100_000]}}
    result = graph["signature"]["output_specs"][0]
    graph["signature"]["output_specs"] = [result] * count
    graph["graph"]["outputs"] = graph["graph"]["outputs"][:1] * count
    with_trees(program, out_spec="[1, " + spec("tuple", ['{"type": "collections.namedtuple", "context": "N", "children_spec": [%s]}' % LEAF] * count) + "]")
    trial.run("named tuples: long fields", base.package(program), base.calls, must="")
    # Many arguments of one name, and others that have the names that these would get.
    count = 12_000
    program = with_trees(base.program(), in_spec=arguments_of(*[spec("tuple", [])] * 2 * count, LEAF), names=[f"a{i}" for i in range(count)] + ["a"] * (count + 1))
    trial.run("arguments: names that collide", base.package(program, extra_padding=os.urandom(16 << 20)), [])
    for name in ("class", "self", "training", "_value", "forward", "a b", "x'\"", "x\ny", "x = __import__('os')", "", "1x", "é", "None", "x: int = 1, *args"):
        trial.run(f"argument named {name!r}", base.package(with_trees(base.program(), names=[name])), base.calls)


def graphs_that_lie(trial, base):
    def case(name, change, must=""):
        program = base.program()
        change(program)
        trial.run(f"graph: {name}", base.package(program), base.calls, must)

    def first(program):
        return nodes(program)[0]
    case("cycle", lambda p: first(p)["inputs"][0]["arg"].update(as_tensor={"name": first(p)["outputs"][0]["as_tensor"]["name"]}), "nothing defines")
    case("missing value", lambda p: first(p)["inputs"][0].update(arg={"as_tensor": {"name": "nobody"}}), "nothing defines")
    case("nodes backwards", lambda p: nodes(p).reverse(), "nothing defines")
    case("missing output", lambda p: p["graph_module"]["graph"]["outputs"].__setitem__(0, {"as_tensor": {"name": "nobody"}}), None)
    case("undefined result", lambda p: nodes(p).clear(), "nothing defines")
    case("fewer inputs", lambda p: p["graph_module"]["graph"]["inputs"].pop(), "signature")
    case("equal names", lambda p: p["graph_module"]["signature"]["input_specs"].__setitem__(1, p["graph_module"]["signature"]["input_specs"][0]), None)
    for target in ("x", "torch.ops", "torch.ops.", "torch.ops.aten", "torch.ops.aten.", "torch.ops.aten.add", "torch.ops..add.Tensor", "torch.ops.aten.nothing.default", "torch.ops.prim.If.default", "torch.ops.prim.Constant.default",
                   "torch.ops.prim.CallFunction.default", "torch.ops.prim.CreateObject.default", "torch.ops.aten.quit.default", "torch.ops.higher_order.", "torch.ops.higher_order.nothing", "_operator.getitem", "torch._sym_system", "builtins.eval",
                   "torch.ops.aten." + "a" * 1_000_000 + ".default", "torch.ops.aten.conv2d.\x00"):
        case(f"target {target[:40]!r}", lambda p: first(p).update(target=target))
    kinds = [{"as_none": True}, {"as_tensor": {"name": "x"}}, {"as_tensors": []}, {"as_tensors": [{"name": "x"}] * 2}, {"as_int": 2**63 - 1}, {"as_ints": [-2**63] * 3}, {"as_float": 1e308}, {"as_floats": [0.5]}, {"as_string": "x" * 100_000}, {"as_strings": ["x"]},
             {"as_bool": True}, {"as_bools": [True]}, {"as_sym_int": {"as_name": "x"}}, {"as_sym_int": {"as_int": -1}}, {"as_sym_ints": [{"as_name": "x"}]}, {"as_sym_bool": {"as_name": "x"}}, {"as_sym_float": {"as_float": "NaN"}}, {"as_scalar_type": 7},
             {"as_scalar_type": -1}, {"as_memory_format": 99}, {"as_layout": 0}, {"as_device": {"type": "cuda", "index": 99}}, {"as_complex": {"real": 1.0, "imag": "Infinity"}}, {"as_operator": "torch.ops.aten.add.Tensor"}, {"as_custom_obj": {"name": "x", "class_fqn": "y"}},
             {"as_optional_tensor": {"as_none": True}}, {"as_optional_tensors": [{"as_none": True}] * 3}, {"as_nested_tensors": [[{"name": "x"}], []]}, {"as_int_lists": [[1], []]}, {"as_string_to_argument": {"a": {"as_int": 1}}},
             {"as_graph": {"name": "g", "graph": {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}}}}, {}, {"as_int": 1, "as_float": 1.0}, {"as_tensors": [{"name": "x"}] * 50_000}]
    for i in range(len(nodes(base.program()))):
        for j in range(len(nodes(base.program())[i]["inputs"])):
            for k, kind in enumerate(kinds):
                case(f"argument {j} of node {i} is of kind {k}", lambda p: nodes(p)[i]["inputs"][j].update(arg=kind), None)
    case("many arguments", lambda p: first(p).update(inputs=first(p)["inputs"] * 20_000), None)
    case("many outputs", lambda p: first(p).update(outputs=first(p)["outputs"] * 20_000))
    case("list of outputs", lambda p: first(p).update(outputs=[{"as_tensors": [{"name": f"o{i}"} for i in range(20_000)]}]))
    case("many nodes", lambda p: nodes(p).extend(nodes(p)[:1] * 20_000), None)


def higher_orders_that_lie(trial, folder):
    for name in ("conditions.training", "while_loops.training", "maps.training", "scans.decomposed", "associative_scans.decomposed", "autocast_scopes.training", "gradient_modes.training", "checkpoints.decomposed", "nested_conditions.training"):
        base = Base(folder, name)
        for n, node in enumerate(nodes(base.program())):
            if "higher_order" not in node["target"]:
                continue

            def case(what, change):
                program = base.program()
                change(nodes(program)[n])
                trial.run(f"{name}: node {n}: {what}", base.package(program), base.calls)
            case("no arguments", lambda node: node.update(inputs=[]))
            for i, value in enumerate(node["inputs"]):
                case(f"without argument {i}", lambda node: node["inputs"].pop(i))
                case(f"argument {i} twice", lambda node: node["inputs"].insert(i, node["inputs"][i]))
                for substitute in ({"as_none": True}, {"as_int": 10**12}, {"as_tensors": []}, {"as_tensor": {"name": "x"}}):
                    case(f"argument {i} is {substitute}", lambda node: node["inputs"][i].update(arg=substitute))
                if "as_graph" not in value["arg"]:
                    continue
                for field in ("inputs", "outputs"):
                    case(f"graph {i} without {field}", lambda node: node["inputs"][i]["arg"]["as_graph"]["graph"].update({field: []}))
                    case(f"graph {i} with more {field}", lambda node: node["inputs"][i]["arg"]["as_graph"]["graph"].update({field: value["arg"]["as_graph"]["graph"][field] * 3}))
                case(f"graph {i} gives a number", lambda node: node["inputs"][i]["arg"]["as_graph"]["graph"].update(outputs=[{"as_int": 1}] * len(value["arg"]["as_graph"]["graph"]["outputs"])))
            case("more outputs", lambda node: node.update(outputs=node["outputs"] * 3))
            case("no outputs", lambda node: node.update(outputs=[]))
    loops_in_loops(trial, Base(folder, "while_loops.training"))


def loops_in_loops(trial, base):
    """The graph of a condition stands twice in the nodes of a loop, and so on in each depth."""
    program = base.program()
    loop = next(node for node in nodes(program) if node["target"].endswith("while_loop"))
    plain = copy.deepcopy(loop)
    for _ in range(9):
        outer = copy.deepcopy(plain)
        condition = outer["inputs"][0]["arg"]["as_graph"]["graph"]
        # The inner loop carries the values of the outer one, and writes names of its own.
        inner = loop
        inner["outputs"] = [{"as_tensor": {"name": f"inner{i}"}} for i in range(len(inner["outputs"]))]
        inner["inputs"][2]["arg"] = {"as_tensors": [i["as_tensor"] for i in condition["inputs"]]}
        condition["nodes"] = [inner] + condition["nodes"] * 200
        loop = outer
    nodes(program)[nodes(program).index(next(node for node in nodes(program) if node["target"].endswith("while_loop")))] = loop
    trial.run("loops in loops", base.package(program), [])


def views_that_lie(trial, base):
    def functionalized(**options):
        program = base.program()
        node = nodes(program)[0]
        node["target"] = "torch.ops.higher_order.auto_functionalized_v2"
        node["inputs"] = [{"name": "", "arg": {"as_operator": options.pop("op", "torch.ops.aten.add_.Tensor")}, "kind": 1}]
        node["inputs"] += [{"name": name, "arg": value, "kind": 2} for name, value in options.items()]
        return base.package(program)
    x = {"as_tensor": {"name": "x"}}
    bases = {"as_tensors": [{"name": "x"}]}
    for name, options in {
        "no base": {"_self_base_index": {"as_int": 0}, "other": x}, "negative": {"_self_base_index": {"as_int": -1}, "_all_bases": bases, "other": x}, "beyond": {"_self_base_index": {"as_int": 10**12}, "_all_bases": bases, "other": x},
        "length": {"_self_length": {"as_int": 10**12}, "_all_bases": bases, "other": x}, "negative length": {"_self_length": {"as_int": -1}, "_all_bases": bases, "other": x}, "length is a text": {"_self_length": {"as_string": "9"}, "_all_bases": bases},
        "length of None": {"op": "torch.ops.aten._foreach_add_.Scalar", "_self_length": {"as_int": 2}, "_all_bases": bases, "scalar": {"as_int": 1}},
        "bases are a number": {"_self_base_index": {"as_int": 0}, "_all_bases": {"as_int": 10**12}, "other": x}, "size": {"_self_base_index": {"as_int": 0}, "_self_size": {"as_ints": [2**40]}, "_self_stride": {"as_ints": [2**40]}, "_self_storage_offset": {"as_int": -1}, "_all_bases": bases, "other": x},
        "size alone": {"_self_base_index": {"as_int": 0}, "_self_size": {"as_ints": [1]}, "_all_bases": bases, "other": x}, "slice": {"_self_base_index": {"as_int": 0}, "_self_slice_dim": {"as_int": 99}, "_self_slice_start": {"as_int": 0}, "_self_slice_end": {"as_int": -2**63}, "_all_bases": bases, "other": x},
        "operator": {"op": "torch.ops.aten.nothing.default"}, "operator's name": {"op": "x"}, "operator without a name": {"op": "torch.ops.."},
    }.items():
        trial.run(f"views: {name}", functionalized(**options), base.calls, must="")


def files_that_lie(trial, base):
    for name, data in {
        "brackets": b"[" * 100_000_000, "pairs of brackets": b"[" + b"[]," * 1_000_000 + b"[]]", "objects": b'{"a":' * 1_000_000, "objects side by side": b'{"graph_module": {"signature": [' + b"{}," * 1_000_000 + b"{}]}}", "nothing": b"", "no JSON": b"\xff\xfe",
        "long number": b"1" * 10_000_000, "long text": b'"' + b"x" * 50_000_000 + b'"', "half a text": b'{"a', "surrogate": b'"\\ud800"', "twice": base.records["models/model.json"] * 2, "null": b"null", "names": b"[" + b"Infinity," * 100_000 + b"NaN]",
        "skipped": b'{"nn_module_stack": ' + b"[" * 200 + b"]" * 200 + b"}", "keys": b"{" + b",".join(b'"%d": 1' % i for i in range(200_000)) + b"}",
    }.items():
        trial.run(f"file: {name}", base.package(data), base.calls, must="")
    model = base.records["models/model.json"]
    for count in (200, 1000):
        records = {name: data for name, data in base.records.items() if name.startswith("data/weights/weight_")}
        for i in range(count):
            records |= {f"models/m{i}.json": model, f"data/weights/m{i}_weights_config.json": base.records["data/weights/model_weights_config.json"]}
        trial.run(f"file: {count} models", packages.write(records), [], must="programs" if count == 1000 else None)
    for name in ("../x", "", "a/b", "a\nb", "class", "self", "forward", "é" * 1000):
        records = {name: data for name, data in base.records.items() if name.startswith("data/weights/weight_")}
        for i in (name, "other"):
            records |= {f"models/{i}.json": model, f"data/weights/{i}_weights_config.json": base.records["data/weights/model_weights_config.json"]}
        trial.run(f"file: a model named {name[:20]!r}", packages.write(records), [])
    extra = {f"extra/{i}": b"x" for i in range(10_000)}
    trial.run("file: extra files", packages.write(base.records | extra), base.calls)
    trial.run("file: archive_version", packages.write(base.records | {"archive_version": b"9" * 100}), base.calls, must="")
    trial.run("file: archive_format", packages.write(base.records | {"archive_format": b"pt3"}), base.calls, must="")
    for dots in ("." * 60, "a." * 63 + "a", "a." * 5000 + "a", ".", "a..b", "", "a b", "\x00", "training", "forward", "computation", "models"):
        program = base.program()
        spec = next(spec for spec in program["graph_module"]["signature"]["input_specs"] if "parameter" in spec)
        old = spec["parameter"]["parameter_name"]
        spec["parameter"]["parameter_name"] = dots
        record = "data/weights/model_weights_config.json"
        config = json.loads(base.records[record])
        config["config"][dots] = config["config"].pop(old)
        trial.run(f"parameter named {dots[:20]!r}", packages.write(base.records | {"models/model.json": json.dumps(program).encode(), record: json.dumps(config).encode()}), base.calls)


def main():
    with tempfile.TemporaryDirectory() as folder, tarfile.open(os.path.join(HERE, "kit.tar.xz")) as kit:
        kit.extractall(folder)
        trial = Trial(folder)
        base = Base(folder, "convolutions.training")
        for part in (weights_that_lie, texts_of_sizes, trees_that_lie, graphs_that_lie, views_that_lie, files_that_lie):
            part(trial, base)
        higher_orders_that_lie(trial, folder)
        for name in ("dict_argument.training", "while_loops.training", "derived_sizes.training", "both_passes", "several_models", "named_tuples.training"):
            base = Base(folder, name)
            systematic(trial, name, base.records, base.calls, 100)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(trial.counts.items())) + f"; {len(trial.failures)} failures")
    sys.exit(1 if trial.failures else 0)


if __name__ == "__main__":
    main()
