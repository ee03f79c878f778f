#!/usr/bin/env bash
# The wheel installs into a fresh environment, without network and without other packages, and brings
# its libraries.
set -euo pipefail
wheel=$1
bytes=$(stat -Lc %s "$wheel")
echo "the wheel has $bytes bytes"
[ "$bytes" -le 60000000 ]

unset PYTHONPATH
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
/usr/bin/python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --no-index --no-deps --disable-pip-version-check "$wheel"
cd "$environment"
bin/python - <<'END'
import os, sys, time

start = time.perf_counter()
import wick
print(f"import wick: {1000 * (time.perf_counter() - start):.0f} ms")
from wick import nn, torch

assert wick.__file__.startswith(sys.prefix), wick.__file__
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
x = torch.randn(2, 3, 8, 8)
assert (wick.jit.script(net)(x) - net(x)).abs().max() < 1e-5
assert torch.allclose(torch.linalg.inv(torch.eye(3)), torch.eye(3))
assert os.path.exists(os.path.join(os.path.dirname(wick.__file__), "py.typed"))
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if ".so" in line}
for library in ("libdnnl", "libopenblas", "libfmt"):
    found = [path for path in loaded if library in path]
    assert found and all(path.startswith(sys.prefix) for path in found), found
END
