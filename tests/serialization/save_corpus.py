#!/usr/bin/python3
"""Saves every recorded archive again and compares the copies with the originals, in Wick and in PyTorch.

usage: save_corpus.py --binary bazel-bin/tests/serialization/save_corpus FOLDER... [--match TEXT] [--limit N] [--jobs N]
                      [--keep FOLDER] [--fails N] [--json FILE] [--at-least] [--freeze]

FOLDER holds cases: folders with a module.pt (a TorchScript archive) and an io.pt (torch.save of a dict: method, args,
kwargs, grad_enabled). For each archive that Wick reads, four things are counted:

  saved      Wick writes it again
  identical  what Wick reads from the copy and writes once more are the same bytes
  wick       the copy's method gives the original's result in Wick
  torch      the same in PyTorch (needs python3-torch), of those archives that PyTorch reads and runs the same way twice

--freeze freezes the modules before they are saved; those that cannot be frozen are left out, and PyTorch is not asked.
--at-least ends with exit code 1 unless all are saved and identical, all agree in Wick and 99% in PyTorch.
"""
import argparse, collections, concurrent.futures, json, os, subprocess, sys, tempfile, warnings

warnings.simplefilter("ignore")


def same(a, b, torch):
    """None, or where two results differ."""
    if type(a) is not type(b):
        return f"{type(b).__name__} for {type(a).__name__}"
    if isinstance(a, torch.Tensor):
        if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
            return f"{b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}"
        if a.layout != torch.strided or a.is_quantized:
            return None if torch.equal(a.dequantize() if a.is_quantized else a.to_dense(),
                                       b.dequantize() if b.is_quantized else b.to_dense()) else "numbers differ"
        a, b = a.detach(), b.detach()
        if a.dtype.is_floating_point or a.dtype.is_complex:
            wide = torch.complex128 if a.dtype.is_complex else torch.float64
            return None if torch.allclose(a.to(wide), b.to(wide), rtol=1e-5, atol=1e-6, equal_nan=True) else "numbers differ"
        return None if torch.equal(a, b) else "numbers differ"
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{len(b)} items for {len(a)}"
        return next((d for d in (same(x, y, torch) for x, y in zip(a, b)) if d), None)
    if isinstance(a, dict):
        if list(a) != list(b):
            return "keys differ"
        return next((d for d in (same(a[k], b[k], torch) for k in a) if d), None)
    if isinstance(a, (int, float, complex, str, bool, type(None))):
        return None if a == b or (a != a and b != b) else f"{b!r} for {a!r}"
    return None  # objects of classes: their parts are not seen


def torch_worker():
    """Reads {"original", "saved", "io"} a line; answers {"verdict", "why"} a line."""
    import torch
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # programs print

    def run(path, io_path):
        io = torch.load(io_path)
        module = torch.jit.load(path)
        torch.manual_seed(0)
        with torch.set_grad_enabled(io["grad_enabled"]):
            try:
                return module, ("value", getattr(module, io["method"])(*io["args"], **io["kwargs"]))
            except Exception as error:
                return module, ("error", type(error).__name__)

    def agree(a, b):
        if a[0] != b[0]:
            return f"{b[0]} {b[1] if b[0] == 'error' else ''} for {a[0]} {a[1] if a[0] == 'error' else ''}"
        return None if a[0] == "error" else same(a[1], b[1], torch)

    for line in sys.stdin:
        case = json.loads(line)
        answer = {"verdict": "same"}
        try:
            torch.load(case["io"])
            torch.jit.load(case["original"])
        except Exception as error:
            answer = {"verdict": "unreadable", "why": str(error)[-300:]}
        else:
            try:
                _, expected = run(case["original"], case["io"])
                _, found = run(case["saved"], case["io"])
                why = agree(expected, found)
                if why:
                    _, second = run(case["original"], case["io"])
                    answer = {"verdict": "different", "why": why}
                    if agree(expected, second):
                        answer["verdict"] = "unsteady"
            except Exception as error:
                answer = {"verdict": "refused", "why": str(error)[-1500:]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Worker:
    """A process that answers lines with lines and is started again when it dies."""

    def __init__(self, argv):
        self.argv, self.process = argv, None

    def ask(self, text):
        if self.process is None:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
            while True:
                line = self.process.stdout.readline()
                if not line:
                    raise BrokenPipeError
                if line.startswith("{"):  # programs print
                    return json.loads(line)
        except (BrokenPipeError, ValueError):
            code, self.process = self.process.wait(), None
            return {"died": code}


def part(arguments, folders, keep):
    wick = Worker([arguments.binary, keep] + ["--freeze"] * arguments.freeze)
    torch = Worker([sys.executable, os.path.abspath(__file__), "--torch-worker"])
    rows = {}
    for folder in folders:
        row = wick.ask(folder)
        if row.get("saved") and not arguments.no_torch and not arguments.freeze:
            row["torch"] = torch.ask(json.dumps({"original": folder + "/module.pt", "saved": row["saved"],
                                                 "io": folder + "/io.pt"}))
        if row.get("saved") and not arguments.keep and os.path.exists(row["saved"]):
            os.unlink(row["saved"])
        rows[folder] = row
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--binary", default="bazel-bin/tests/serialization/save_corpus")
    parser.add_argument("--match", default="")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep")
    parser.add_argument("--fails", type=int, default=10)
    parser.add_argument("--json")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--at-least", action="store_true")
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--torch-worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch_worker:
        return torch_worker()
    short, report = False, {}
    with tempfile.TemporaryDirectory() as temporary:
        for group in arguments.folders:
            keep = arguments.keep or temporary
            os.makedirs(keep, exist_ok=True)
            cases = [os.path.join(group, n) for n in sorted(os.listdir(group)) if arguments.match in n]
            cases = [c for c in cases if os.path.exists(c + "/module.pt")]
            if arguments.limit:
                cases = cases[:: max(1, len(cases) // arguments.limit)]
            parts = [cases[i :: arguments.jobs] for i in range(arguments.jobs)]
            with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
                results = list(pool.map(lambda p: part(arguments, p, keep), parts))
            rows = {folder: row for result in results for folder, row in result.items()}
            report.update(rows)
            short |= show(os.path.basename(group.rstrip("/")), rows, arguments)
    if arguments.json:
        json.dump(report, open(arguments.json, "w"), indent=1)
    sys.exit(1 if short and arguments.at_least else 0)


def show(name, rows, arguments):
    def recorded(folder):  # random results need not agree in their numbers
        try:
            return json.load(open(folder + "/case.json")).get("kind")
        except OSError:
            return "value"

    bad = collections.defaultdict(list)
    read = {f: r for f, r in rows.items() if "unreadable" not in r}
    count = collections.Counter()
    for folder, row in sorted(read.items()):
        label = os.path.basename(folder)
        if "died" in row or "error" in row:
            bad["saved"].append((label, row.get("error") or f"died with {row['died']}"))
            continue
        count["saved"] += 1
        count["identical"] += bool(row["identical"])
        if not row["identical"]:
            bad["identical"].append((label, ""))
        agrees = row["same"] or (row["kind"] and (recorded(folder) != "value" or not row["steady"]))
        count["wick"] += agrees
        if not agrees:
            bad["wick"].append((label, row.get("raised", "another result")))
        torch = row.get("torch", {"verdict": "unreadable"})
        verdict = torch.get("verdict", "died")
        if verdict in ("unreadable", "unsteady"):
            count["not torch"] += 1
            continue
        count["torch"] += verdict == "same"
        if verdict != "same":
            bad["torch"].append((label, verdict + ": " + (torch.get("why") or "")))
    total = len(read)
    for what in ("saved", "identical", "wick", "torch"):
        of = total - (count["not torch"] + len(bad["saved"]) if what == "torch" else 0)
        rate = 100.0 * count[what] / max(1, of)
        print(f"{name}: {what} {count[what]}/{of} ({rate:.2f}%)", flush=True)
        for label, why in bad[what][: arguments.fails]:
            lines = [l for l in why.splitlines() if l.strip()] or [""]
            print(f"    {label}: {' | '.join(lines[:6])[:400]}")
    return (len(bad["saved"]) + len(bad["identical"]) + len(bad["wick"]) > 0
            or len(bad["torch"]) > 0.01 * (count["torch"] + len(bad["torch"])))


main()
