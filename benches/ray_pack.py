#!/usr/bin/env python3
"""The time to pack photographs on two one-core Ray nodes, compared with two shard processes.

    PHOTOS=FOLDER BENCH="benches/ray_pack.py --rounds 5" scripts/ray_cluster.sh release

That script starts the cluster. The times include neither its start nor the first task of each node,
which starts Python there. Both sides plan, pack and commit; planning and the commit run in
this process. The order alternates, and the files of both are compared in every round. Photographs
of the folder are repeated under other names until there are enough. The last line is the ratio.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, Dict, List, Optional

import meetpoint
import meetpoint.ray
import ray

NODES = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, default=os.environ.get("PHOTOS"))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--parts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shards", type=int, help="tasks of Ray; the default is that of Meetpoint")
    arguments = parser.parse_args()
    if arguments.photos is None:
        parser.error("name a folder of photographs: --photos FOLDER, or PHOTOS=FOLDER")
    os.environ["SOURCE_DATE_EPOCH"] = "1000000000"
    ray.init(address="auto", log_to_driver=False, logging_level="ERROR")

    work = Path(os.environ["MEETPOINT_WORK"]) / "bench"
    sizes = repeated(arguments.photos, work / "photos", arguments.count)
    size = size_of_parts(sizes, arguments.parts)
    begun = time.monotonic()
    nodes = warm()
    print(f"first task of each node: {time.monotonic() - begun:.2f} s, on {', '.join(nodes)}")
    assert len(nodes) == NODES, "a core each"
    print(f"{len(sizes)} photographs, {sum(sizes) / 1e6:.0f} MB, {arguments.parts} parts")

    times: Dict[str, List[float]] = {"shards": [], "ray": []}
    print_load()
    for round_ in range(arguments.rounds):
        order = ["shards", "ray"] if round_ % 2 else ["ray", "shards"]
        found: Dict[str, Dict[str, str]] = {}
        for name in order:
            to = work / f"{name}.set"
            os.sync()
            begun = time.monotonic()
            if name == "ray":
                packed = meetpoint.ray.pack(
                    work / "photos", to, shards=arguments.shards, part_source_bytes=size
                )
                assert packed.parts == arguments.parts, packed
            else:
                pack_in_shards(work / "photos", to, size)
            times[name].append(time.monotonic() - begun)
            found[name] = hashes(to)
            shutil.rmtree(to)
        assert found["ray"] == found["shards"], "the same files"
        print(*(f"{name} {times[name][-1]:.3f} s" for name in order), flush=True)
    print_load()
    ratios = [one / other for one, other in zip(times["ray"], times["shards"])]
    print(
        f"ray {median(times['ray']):.3f} s, two shard processes {median(times['shards']):.3f} s, "
        f"ratio {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}), "
        f"medians of {arguments.rounds} rounds"
    )


def pack_in_shards(photos: Path, to: Path, size: int) -> None:
    """One process for each core."""
    plan = meetpoint.shards.plan("pack", photos, to, shards=NODES, part_source_bytes=size)
    program = os.environ.get("PROGRAM")
    command = [program] if program else [sys.executable, "-m", "meetpoint"]
    cores = os.cpu_count() or 1
    running = [
        subprocess.Popen(
            ["taskset", "-c", str(shard % cores), *command, "shards", "run", plan.folder]
            + ["--shard", str(shard), "--threads", "1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for shard in range(NODES)
    ]
    assert [it.wait() for it in running] == [0] * NODES
    meetpoint.shards.commit(plan.folder)


def warm() -> List[str]:
    """Runs a task on each node with CPUs, which imports Meetpoint; returns their addresses."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    @ray.remote(num_cpus=1)
    def import_meetpoint() -> str:
        import meetpoint.ray  # noqa: F401

        return str(ray.util.get_node_ip_address())

    nodes = [it for it in ray.nodes() if it["Alive"] and it["Resources"].get("CPU", 0) >= 1]
    calls: List[Any] = [
        import_meetpoint.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in nodes
    ]
    return sorted(ray.get(calls))


def repeated(photos: Path, to: Path, count: int) -> List[int]:
    """Links photographs under ``count`` names; returns their sizes in the order of the names."""
    files = sorted(it for it in photos.rglob("*") if it.is_file())
    to.mkdir(parents=True)
    sizes: List[int] = []
    copies: Dict[Path, Optional[Path]] = {}
    for number in range(count):
        of = files[number % len(files)]
        name = to / f"{number:06}{of.suffix}"
        first = copies.get(of)
        if first is None:
            shutil.copyfile(of, name)
            copies[of] = name
        else:
            os.link(first, name)
        sizes.append(name.stat().st_size)
    return sizes


def size_of_parts(sizes: List[int], parts: int) -> int:
    """The ``part_source_bytes`` that cuts files of these sizes into a number of parts."""
    low, high = 1, sum(sizes)
    while low < high:
        middle = (low + high) // 2
        if parts_of(sizes, middle) > parts:
            low = middle + 1
        else:
            high = middle
    assert parts_of(sizes, low) == parts, f"no size gives {parts} parts"
    return low


def parts_of(sizes: List[int], size: int) -> int:
    parts, used = 1, 0
    for it in sizes:
        if used and used + it > size:
            parts, used = parts + 1, 0
        used += it
    return parts


def hashes(folder: Path) -> Dict[str, str]:
    """The SHA-256 of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def print_load() -> None:
    print("load " + " ".join(f"{it:.1f}" for it in os.getloadavg()), flush=True)


if __name__ == "__main__":
    main()
