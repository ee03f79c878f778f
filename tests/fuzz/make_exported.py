#!/usr/bin/env python3
"""Writes the programs that exported_fuzz changes: the JSON of small packages of tests/exported/kit.tar.xz, without what explains nodes.

usage: make_exported.py KIT OUT
"""
import io
import json
import sys
import tarfile
import zipfile

NAMES = """both_passes buffers_change.training checkpoints.decomposed condition_on_sizes.training conditions.training constants.training
convolutions.training derived_sizes.training dict_argument.training integer_keys.training input_is_written.training lists_of_results.training maps.training
mixed_results.training named_tuples.training scans.decomposed strings.training transformer.decomposed while_loops.training""".split()
UNREAD = ("metadata", "nn_module_stack")


def without_explanations(value):
    if isinstance(value, dict):
        return {k: {} if k in UNREAD else without_explanations(v) for k, v in value.items()}
    return [without_explanations(v) for v in value] if isinstance(value, list) else value


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    programs = []
    with tarfile.open(sys.argv[1]) as kit:
        for name in NAMES:
            package = zipfile.ZipFile(io.BytesIO(kit.extractfile(kit.getmember(f"{name}/module.pt2")).read()))
            records = {n.split("/", 1)[1]: package.read(n) for n in package.namelist()}
            program = json.dumps(without_explanations(json.loads(records["models/model.json"])), separators=(",", ":"))
            config = json.loads(records["data/weights/model_weights_config.json"])["config"]
            config |= json.loads(records["data/constants/model_constants_config.json"])["config"]
            for i, entry in enumerate(config.values()):
                entry["path_name"] = f"weight_{i % 16}"
            programs.append(program + "\n====\n" + json.dumps({"config": config}, separators=(",", ":")))
    with open(sys.argv[2], "w") as out:
        out.write("\n####\n".join(programs))


if __name__ == "__main__":
    main()
