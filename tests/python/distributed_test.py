"""wick.distributed: two processes train to the weights of one with the double batch, eagerly and on the
device "lazy": those of MPI, where mpirun is, and those that the environment tells of."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import testing  # noqa: F401  (finds the package)
import wick
from wick import distributed, lazy, nn, optim, torch

STEPS = 6
BATCH = 8


def train(device, rank=0, size=1, exchange_all=False):
    """The weights, and what was counted. Each process gets its part of each batch."""
    torch.manual_seed(3 + rank)  # all but process 0 begin with other weights
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    for p in model.parameters():
        p.data = p.data.to(device)
    exchange = distributed.GradientExchange(model.parameters()) if exchange_all else None
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    lazy.reset_counters()
    for step in range(STEPS):
        torch.manual_seed(100 + step)
        x, target = torch.randn(BATCH, 6), torch.randint(0, 3, (BATCH,))
        part = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        loss = nn.functional.cross_entropy(model(x[part].to(device)), target[part].to(device))
        optimizer.zero_grad()
        loss.backward()
        if exchange:
            exchange.finish()
        optimizer.step()
        lazy.mark_step()
    weights = [p.detach().cpu().flatten().tolist() for p in model.parameters()]
    return weights, lazy.counters()


def one_process(folder):
    """What each process of mpirun does. It leaves a file with what it found."""
    distributed.init()
    rank, size = distributed.rank(), distributed.size()
    made = {"rank": rank, "size": size}
    numbers = torch.arange(3) + rank
    made["sum"] = distributed.all_reduce(numbers, "sum").tolist()
    made["max"] = distributed.all_reduce(numbers, "max").tolist()
    made["mean"] = distributed.all_reduce(numbers.to(torch.float64)).tolist()
    made["first"] = distributed.broadcast(numbers.clone()).tolist()
    large = torch.ones(3_000_001) * (rank + 1)
    made["large"] = distributed.all_reduce(large, "sum").sum().item()
    distributed.barrier()
    for device in ("cpu", "lazy"):
        made[device], counters = train(device, rank, size, exchange_all=True)
        made[device + " counters"] = counters
    distributed.shutdown()
    try:
        distributed.rank()
    except RuntimeError as error:
        made["after"] = str(error)
    with open(os.path.join(folder, f"{rank}.json"), "w") as file:
        json.dump(made, file)


class Distributed(unittest.TestCase):
    def run_with_mpi(self, count):
        if not shutil.which("mpirun"):
            self.skipTest("mpirun is not installed")
        environment = dict(
            os.environ,
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_btl="self,vader",
            OMPI_MCA_btl_vader_single_copy_mechanism="none",
            OMPI_MCA_rmaps_base_oversubscribe="1",
            OMPI_MCA_hwloc_base_binding_policy="none",
            TMPDIR="/tmp",  # names of sockets are short
            HOME="/tmp",
        )
        return self.results_of([(["mpirun", "-n", str(count)], environment)], count)

    def run_with_addresses(self, count):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        said = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        return self.results_of(
            [([], dict(os.environ, RANK=str(rank), **said)) for rank in range(count)], count
        )

    def results_of(self, starts, count):
        """What the processes of the commands found, by rank."""
        with tempfile.TemporaryDirectory() as folder:
            program = [sys.executable, os.path.abspath(__file__), "process", folder]
            running = [
                subprocess.Popen(
                    command + program,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                for command, environment in starts
            ]
            try:
                for process in running:
                    printed, _ = process.communicate(timeout=240)
                    self.assertEqual(process.returncode, 0, printed)
            finally:
                for process in running:
                    process.kill()
            results = []
            for rank in range(count):
                with open(os.path.join(folder, f"{rank}.json")) as file:
                    results.append(json.load(file))
        return results

    def test_two_processes_are_one_with_the_double_batch(self):
        self.check(self.run_with_mpi(2))

    def test_without_mpi(self):
        self.check(self.run_with_addresses(2))

    def check(self, results):
        self.assertEqual([r["rank"] for r in results], [0, 1])
        want, _ = train("cpu")
        for r in results:
            self.assertEqual(r["size"], 2)
            self.assertEqual(r["sum"], [1, 3, 5])
            self.assertEqual(r["max"], [1, 2, 3])
            self.assertEqual(r["mean"], [0.5, 1.5, 2.5])
            self.assertEqual(r["first"], [0, 1, 2])
            self.assertEqual(r["large"], 3 * 3_000_001)
            self.assertIn("no group", r["after"])
            for device in ("cpu", "lazy"):
                self.assertEqual(r[device], results[0][device], "all have the same bits")
                for got, expected in zip(r[device], want):
                    for a, b in zip(got, expected):
                        self.assertAlmostEqual(a, b, delta=1e-6)
            # A step is one graph, with the exchange in it.
            counters = r["lazy counters"]
            self.assertEqual(counters["compiled"], 1, counters)
            self.assertEqual(counters["found"], STEPS - 1, counters)
            self.assertEqual(counters["immediate"], {})

    def test_without_a_group(self):
        self.assertFalse(distributed.is_initialized())
        with self.assertRaisesRegex(RuntimeError, "distributed.init"):
            distributed.rank()
        with self.assertRaisesRegex(RuntimeError, "distributed.init"):
            distributed.all_reduce(torch.ones(2))
        with self.assertRaisesRegex(RuntimeError, "distributed.init"):
            distributed.GradientExchange(nn.Linear(2, 2).parameters())


if __name__ == "__main__":
    if sys.argv[1:2] == ["process"]:
        one_process(sys.argv[2])
    else:
        unittest.main()
