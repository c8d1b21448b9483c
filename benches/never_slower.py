#!/usr/bin/env python3
"""Times `auto` against `host-only` on the emulated device, sound and faulty; prints the ratio of medians.

    benches/never_slower.py PROGRAM DATASET [--pairs 5]

PROGRAM is a release build of `meetpoint`, DATASET a folder that `meetpoint pack` made. The two strategies
run in turns in alternating order, so that drift of the machine favours neither.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

DEVICES = {
    "sound": "",
    "die@1": '"die@1"',
    "slow@1:x10": '"slow@1:x10"',
    "slow@8:x4": '"slow@8:x4"',
    "stall@3:2s": '"stall@3:2s"',
}

JOB = """
dataset = {dataset}
batch_size = 8
epochs = 3
verify = false

[[recipe.operation]]
name = "decode"

[[recipe.operation]]
name = "random_resized_crop"
size = 224

[device]
kind = "emulated"
cpu_ratio = 0.4
faults = [{faults}]

[accelerator]
kind = "emulated"
step = "8ms"
"""


def run(program, folder, strategy):
    """Seconds of a run, and batches that the device prepared."""
    command = [program, "run", "job.toml", "--strategy", strategy, "--report", "report"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    report = json.loads((pathlib.Path(folder) / "report" / "report.json").read_text())
    totals = report["runs"][0]["totals"]
    return totals["seconds"], totals["device_batches"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("dataset", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    program = str(given.program.resolve())
    dataset = json.dumps(str(given.dataset.resolve()))
    print(f"{'device':<12} {'host-only':>10} {'auto':>10} {'ratio':>7}  device batches, ratios of the pairs")
    for device, faults in DEVICES.items():
        seconds = {"host-only": [], "auto": []}
        by_device = []
        with tempfile.TemporaryDirectory() as folder:
            job = JOB.format(dataset=dataset, faults=faults)
            (pathlib.Path(folder) / "job.toml").write_text(job)
            for pair in range(given.pairs):
                order = list(seconds) if pair % 2 else list(reversed(seconds))
                for strategy in order:
                    took, batches = run(program, folder, strategy)
                    seconds[strategy].append(took)
                    if strategy == "auto":
                        by_device.append(batches)
        alone, auto = (statistics.median(seconds[strategy]) for strategy in ("host-only", "auto"))
        pairs = " ".join(f"{b / a:.3f}" for a, b in zip(*seconds.values()))
        print(f"{device:<12} {alone:>8.3f} s {auto:>8.3f} s {auto / alone:>7.3f}  {by_device}, {pairs}", flush=True)


if __name__ == "__main__":
    main()
