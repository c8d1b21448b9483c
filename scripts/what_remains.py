#!/usr/bin/env python3
"""Kills a device, a rank and a parent with SIGKILL between two epochs, and shows what remains.

    python scripts/what_remains.py [--markdown FILE]

Needs the package meetpoint installed. Two ranks with an emulated device each run under a separate
parent. Afterwards it looks for their processes, for sockets and folders in the folder for sockets
(XDG_RUNTIME_DIR), named shared memory, temporary files. Ends with 1 if anything remains.
"""

import argparse
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

RANK = """
import json, sys, warnings, meetpoint
from meetpoint import transforms as T
dataset, rank, place = sys.argv[1:]
with meetpoint.Loader(dataset, recipe=T.Compose([T.CenterCrop(8)]), batch_size=2, strategy="wrr",
        device=meetpoint.Emulated(allow_shared=True, latency=0.02), rank=int(rank), world_size=2,
        rendezvous=place, columns=["sample"], workers=1) as loader:
    print(json.dumps({"devices": loader.device_processes}), flush=True)
    warnings.simplefilter("ignore")
    counts = []
    try:
        for epoch in range(3):
            counts.append(sum(len(batch["sample"]) for batch in loader))
            print(json.dumps({"samples": counts}), flush=True)
            if epoch == 0:
                sys.stdin.readline()
    except meetpoint.RankError as error:
        print(json.dumps({"error": str(error)}), flush=True)
"""

PARENT = """
import subprocess, sys
code, dataset, place = sys.argv[1:]
ranks = [subprocess.Popen([sys.executable, "-c", code, dataset, str(rank), place],
                          stdin=subprocess.PIPE) for rank in range(2)]
print(*[rank.pid for rank in ranks], flush=True)
sys.stdin.read()
"""

# Longest wait for what is to go by itself.
LIMIT_S = 60


def write_pictures(folder, count):
    """Grey PNGs of one colour each, without a library."""
    folder.mkdir()
    for number in range(count):
        rows = (b"\0" + bytes([number % 256]) * 16) * 16

        def chunk(kind, body):
            check = struct.pack(">I", zlib.crc32(kind + body))
            return struct.pack(">I", len(body)) + kind + body + check

        header = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0))
        body = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        (folder / f"{number:03}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + body)


def is_running(process):
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def running(processes):
    return [process for process in processes if is_running(process)]


def wait_until_gone(processes):
    """Those that are still there after the limit."""
    deadline = time.monotonic() + LIMIT_S
    while running(processes) and time.monotonic() < deadline:
        time.sleep(0.02)
    return running(processes)


def names(folder):
    """Files below a folder, and named shared memory."""
    found = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    return found + [name for name in os.listdir("/dev/shm") if name.startswith("meetpoint")]


class Rank:
    """A rank that stands after its first epoch."""

    def __init__(self, dataset, rank, place, environment):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RANK, dataset, str(rank), place],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
        )  # fmt: skip

    def line(self):
        text = self.process.stdout.readline()
        return json.loads(text) if text else {}


def kill_one(dataset, runtime, environment, what):
    """Two ranks; kills the device or the process of rank 1. What the others say, and remains."""
    place = f"unix:{runtime / 'ranks'}"
    ranks = [Rank(dataset, rank, place, environment) for rank in range(2)]
    devices = [rank.line()["devices"][0] for rank in ranks]
    for rank in ranks:
        rank.line()
    killed = devices[1] if what == "device" else ranks[1].process.pid
    os.kill(killed, signal.SIGKILL)
    said = []
    left = [rank for rank in ranks if rank.process.pid != killed]
    for rank in left:
        rank.process.stdin.write("\n")
        rank.process.stdin.close()
    for number, rank in enumerate(left):
        last = {}
        while line := rank.line():
            last = line
        rank.process.wait()
        if "error" in last:
            said.append(f"rank {number}: {last['error']}")
        else:
            said.append(f"rank {number}: {len(last['samples'])} epochs, samples {last['samples']}")
    for rank in ranks:
        rank.process.wait()
    return said, wait_until_gone([*devices, *[rank.process.pid for rank in ranks]])


def kill_parent(dataset, runtime, environment):
    """A process that started two ranks is killed; they lose their standard input, and end."""
    place = f"unix:{runtime / 'ranks'}"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, RANK, dataset, place],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
    )  # fmt: skip
    ranks, devices, epochs = [], [], 0
    while epochs < 2:
        line = parent.stdout.readline()
        if not line.startswith("{"):
            ranks = [int(word) for word in line.split()]
            continue
        answer = json.loads(line)
        devices += answer.get("devices", [])
        epochs += "samples" in answer
    parent.kill()
    parent.wait()
    answer = wait_until_gone([*ranks, *devices])
    return [f"{len(ranks)} ranks and {len(devices)} devices ended by themselves"], answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--markdown", type=pathlib.Path)
    arguments = parser.parse_args()
    import meetpoint

    lines = ["| killed with SIGKILL | what the others say | processes | names |"]
    lines.append("|---|---|---|---|")
    remains = False
    with tempfile.TemporaryDirectory(prefix="mp", dir="/tmp") as temporary:
        folder = pathlib.Path(temporary)
        write_pictures(folder / "pictures", 40)
        dataset = meetpoint.pack(folder / "pictures", folder / "set").destination
        for what in ("device", "rank", "parent"):
            runtime = folder / what
            runtime.mkdir()
            environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(runtime)}
            if what == "parent":
                said, left = kill_parent(dataset, runtime, environment)
            else:
                said, left = kill_one(dataset, runtime, environment, what)
            found = names(runtime)
            remains = remains or bool(left or found)
            cells = [what, "; ".join(said), ", ".join(map(str, left)) or "none"]
            cells.append(", ".join(found) or "none")
            lines.append("| " + " | ".join(cells) + " |")
    print("\n".join(lines))
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    sys.exit(1 if remains else 0)


if __name__ == "__main__":
    main()
