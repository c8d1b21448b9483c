"""How far predictions of plans are off: planned and run settings of one machine.

    python3 python/studies/plan_errors.py meetpoint PHOTOS.set WORK

Profiles two recipes once each, plans at least twelve settings from these measurements, with the
stored form, workers, cache, device and step fixed, runs each plan for six epochs and compares its
later epochs with the prediction: their time, and the processor time of the host, which depends
less on what else the machine does. Prints a table, the medians of the absolute errors, and the load
average before and after. Only the standard library.
"""

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

TRAIN = """\
[[operation]]
name = "decode"
[[operation]]
name = "resize"
size = 256
[[operation]]
name = "random_crop"
size = 224
[[operation]]
name = "random_horizontal_flip"
"""
EVALUATE = """\
[[operation]]
name = "decode"
[[operation]]
name = "resize"
size = 256
[[operation]]
name = "center_crop"
size = 224
[[operation]]
name = "to_dtype"
dtype = "float32"
scale = true
"""
RECIPES = {"train": TRAIN, "evaluate": EVALUATE}
# Recipe, fixed values, further options.
SETTINGS = [
    ("train", ["stored=packed", "cache=0", "workers=0"], []),
    ("train", ["stored=packed", "cache=0", "workers=1"], []),
    ("train", ["stored=packed", "cache=0", "workers=2"], []),
    ("train", ["stored=1-decode", "codec=none", "cache=0", "workers=1"], []),
    ("train", ["stored=2-resize", "codec=none", "cache=0", "workers=1"], []),
    ("train", ["stored=2-resize", "codec=none", "cache=0", "workers=2"], []),
    ("train", ["stored=2-resize", "codec=none", "cache=0", "workers=0"], []),
    ("train", ["stored=packed", "cache=1GiB", "workers=1"], []),
    ("train", ["stored=packed", "cache=1GiB", "workers=2"], []),
    ("train", ["stored=packed", "cache=0", "workers=1"], ["--step=150ms"]),
    ("train", ["stored=packed", "cache=0", "workers=1", "strategy=wrr"],
     ["--device=emulated,cpu_ratio=0.5"]),
    ("evaluate", ["stored=packed", "cache=0", "workers=1"], []),
    ("evaluate", ["stored=packed", "cache=0", "workers=2"], []),
    ("evaluate", ["stored=4-to_dtype", "codec=none", "cache=0", "workers=1"], []),
    ("evaluate", ["stored=2-resize", "codec=none", "cache=0", "workers=1"], []),
    ("evaluate", ["stored=packed", "cache=1GiB", "workers=2"], []),
]


def call(*words: str) -> str:
    """Standard output of a command, which must succeed."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def main(program: str, dataset: str, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    threads = "1,2"
    print(f"load before: {os.getloadavg()[0]:.1f}")
    for name, text in RECIPES.items():
        (work / f"{name}.toml").write_text(text)
        call(program, "profile", str(work / f"{name}.toml"), dataset, "--runs=3",
             f"--threads={threads}", "--samples=96", "--codecs=none", f"--csv={work / name}.csv",
             f"--temporary={work}")
    errors, of_host = [], []
    for number, (name, pins, options) in enumerate(SETTINGS):
        plan = work / f"plan-{number}.toml"
        words = [program, "plan", str(work / f"{name}.toml"), dataset, "--epochs=6",
                 "--batch-size=8", f"--profile={work / name}.csv", "--force", "-o", str(plan)]
        call(*words, *options, *[f"--pin={pin}" for pin in pins])
        command = next((line for line in plan.read_text().splitlines()
                        if line.startswith("command = ")), None)
        if command is not None:
            parts = shlex.split(json.loads(command.split(" = ", 1)[1]))
            if not Path(parts[4]).exists():
                call(program, *parts[1:])
        report = work / f"report-{number}"
        shutil.rmtree(report, ignore_errors=True)
        call(program, "run", "--plan", str(plan), "--no-verify", "--report", str(report))
        run = json.loads((report / "report.json").read_text())["runs"][0]
        compared = run["plan"]
        errors.append(abs(compared["error_ratio"]))
        host = (compared["achieved"]["host_core_seconds"]
                / compared["predicted"]["host_core_seconds"] - 1)
        of_host.append(abs(host))
        why = ", ".join(it["kind"] for it in compared["deviations"])
        print(f"{name} {' '.join([*pins, *options])}: predicted "
              f"{compared['predicted']['epoch_seconds']:.3f} s, achieved "
              f"{compared['achieved']['epoch_seconds']:.3f} s, {100 * compared['error_ratio']:+.1f} %"
              f", processor time {100 * host:+.1f} %"
              f", bottleneck {compared['achieved_bottleneck']}"
              f" (predicted {compared['predicted_bottleneck']}) {why}", flush=True)
    print(f"load after: {os.getloadavg()[0]:.1f}")
    for what, found in (("time", errors), ("processor time", of_host)):
        print(f"{len(found)} settings, {what}: median error {100 * statistics.median(found):.1f} %,"
              f" largest {100 * max(found):.1f} %")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
