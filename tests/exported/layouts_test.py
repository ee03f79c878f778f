"""Rewrites programs of the kit as earlier and later versions of PyTorch would have saved them, and runs them.

`FORMS` are the changes. A program is left out where the form cannot hold it, and only for the reasons that are written there.
"""
import collections
import json
import os
import sys
import tarfile
import tempfile

import exported_test
import packages

HERE = os.path.dirname(os.path.abspath(__file__))
# Each form has its share of the many programs of single operators.
SHARE = 24


class NotHeld(Exception):
    """The form has no place for what the program needs."""


def check_single(records):
    if packages.models(records) != ["model"]:
        raise NotHeld("a flat file has one program")


def flat(records):
    """The files before PyTorch 2.8, side by side and without a folder."""
    check_single(records)
    out = {"serialized_exported_program.json": records["models/model.json"]}
    out["serialized_state_dict.pt"] = saved(records, "weights", "model")
    out["serialized_constants.pt"] = saved(records, "constants", "model")
    out["serialized_example_inputs.pt"] = b""
    out["version"] = b"8.8"
    out |= {"extra_files/" + name[len("extra/"):]: data for name, data in records.items() if name.startswith("extra/")}
    return packages.write(out, "")


def saved_weights(records):
    """Packages of PyTorch 2.8, which hold the tensors of a model in files of torch.save."""
    out = {name: data for name, data in records.items() if not name.startswith(("data/weights/", "data/constants/"))}
    for model in packages.models(records):
        out[f"data/weights/{model}.pt"] = saved(records, "weights", model)
        out[f"data/constants/{model}.pt"] = saved(records, "constants", model)
    return packages.write(out)


def saved(records, kind, model):
    entries = packages.config(records, kind, model)
    for entry in entries.values():
        if entry["use_pickle"] or entry["tensor_meta"]["dtype"] not in packages.STORAGES:
            raise NotHeld("a value that is no plain tensor")
    return packages.saved(records, kind, entries)


def changed(change):
    """A form that changes the JSON of each model."""
    def form(records):
        out = dict(records)
        for model in packages.models(records):
            program = packages.program(records, model)
            change(program)
            out[f"models/{model}.json"] = json.dumps(program).encode()
        return packages.write(out)
    return form


def graphs(program):
    """The graph of a program and those within its nodes."""
    waiting = [program["graph_module"]["graph"]]
    while waiting:
        graph = waiting.pop()
        yield graph
        for node in graph["nodes"]:
            waiting += [i["arg"]["as_graph"]["graph"] for i in node["inputs"] if "as_graph" in i["arg"]]


def without_fields(program):
    """The fields that came after the first program of schema 8."""
    program["schema_version"]["minor"] = 0
    for field in ("torch_version", "verifiers", "guards_code"):
        program.pop(field, None)
    module = program["graph_module"]
    for field in ("treespec_namedtuple_fields", "metadata"):
        module.pop(field, None)
    for call in module["module_call_graph"]:
        if call.get("signature"):
            call["signature"].pop("forward_arg_names", None)
    for graph in graphs(program):
        for field in ("sym_float_values", "custom_obj_values", "is_single_tensor_return"):
            graph.pop(field, None)
        for node in graph["nodes"]:
            for field in ("name", "is_hop_single_tensor_return", "metadata"):
                node.pop(field, None)
            for value in node["inputs"]:
                value.pop("kind", None)


def without_kinds(program):
    """Only the kinds of inputs, by position or by keyword."""
    for graph in graphs(program):
        for node in graph["nodes"]:
            for value in node["inputs"]:
                value.pop("kind", None)


def null_fields(program):
    """Optional fields that are null, as later versions write them."""
    for graph in graphs(program):
        for node in graph["nodes"]:
            node["name"] = node["is_hop_single_tensor_return"] = None
    program["torch_version"] = program["graph_module"]["treespec_namedtuple_fields"] = None


def later(program):
    """Fields that no version knows yet, in all objects whose fields are names of the schema, and a later minor version."""
    program["schema_version"] = {"minor": 900, "major": 8, "patch": 3}
    extra = {"later_field": [{"as_later": {"name": "x", "nodes": [1, {"target": None}]}}]}
    program |= extra
    module = program["graph_module"]
    module |= extra
    module["signature"] |= extra
    for graph in graphs(program):
        graph |= extra
        for node in graph["nodes"]:
            node |= extra
            for value in node["inputs"]:
                value |= extra
        for meta in graph["tensor_values"].values():
            meta |= extra
            meta["device"] |= extra
    for call in module["module_call_graph"]:
        call |= extra
        if call.get("signature"):
            call["signature"] |= extra


def oldest(records):
    """The flat files with programs that lack the fields of later versions."""
    check_single(records)
    program = packages.program(records)
    without_fields(program)
    return flat(records | {"models/model.json": json.dumps(program).encode()})


FORMS = {
    "flat": flat,
    "oldest": oldest,
    "saved_weights": saved_weights,
    "without_fields": changed(without_fields),
    "without_kinds": changed(without_kinds),
    "null_fields": changed(null_fields),
    "later": changed(later),
}
# Forms that take away what a program needs, by the beginnings of their names.
NEEDS = dict.fromkeys(("oldest", "without_fields"), ("arithmetic_of_sizes",))  # a condition of guards_code


def main():
    match = sys.argv[1] if len(sys.argv) > 1 else ""
    counts = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(os.path.join(HERE, "kit.tar.xz")) as kit:
        kit.extractall(folder)
        names = sorted(name for name in os.listdir(folder) if match in name and name not in exported_test.OLDER)
        operators = [name for name in names if name.startswith("op_")]
        path = os.path.join(folder, "changed.pt2")
        for number, (form, make) in enumerate(FORMS.items()):
            count = counts[form]
            chosen = [name for name in names if not name.startswith(("op_", *NEEDS.get(form, ())))] + operators[number::SHARE]
            for name in chosen:
                try:
                    package = make(packages.read(os.path.join(folder, name, "module.pt2")))
                except NotHeld:
                    count["not held"] += 1
                    continue
                with open(path, "wb") as file:
                    file.write(package)
                try:
                    why = exported_test.check(os.path.join(folder, name), path)
                except Exception as error:
                    if any(reason in str(error) for reason in exported_test.REFUSED):
                        count["refused"] += 1
                        continue
                    why = f"{type(error).__name__}: {error}"
                verdict = "failed" if why else "passed"
                count[verdict] += 1
                if why:
                    print(f"{form} of {name}: {' '.join(why.split())[:300]}", flush=True)
    for form, count in counts.items():
        print(f"{form}: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(count.items())))
    sys.exit(1 if any(count["failed"] for count in counts.values()) else 0)


if __name__ == "__main__":
    main()
