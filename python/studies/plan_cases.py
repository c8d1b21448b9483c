"""Three cases of plans, as real runs of this machine.

    python3 python/studies/plan_cases.py meetpoint PHOTOS.set WORK [--epochs N] [--case 1|2|3 …]

1. A plan beside the same recipe with nothing and with everything prepared offline: seconds of
   preparing and of all epochs, measured.
2. A device so slow that it should get nothing: what the plan says, and epochs with and without the
   device, measured.
3. A prediction that is off, since other processes take the cores during the run: what the report
   says. The processes are started here and end with the case.

Prints the tables and the load average. Only the standard library.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

RECIPE = """\
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
TURNS = 3
SPIN = "while True: pass"


class Cases:
    """The program, and the folder that it works in."""

    def __init__(self, program: str, dataset: Path, work: Path, epochs: int) -> None:
        self.program = str(Path(program).resolve())
        self.dataset, self.work, self.epochs = dataset.resolve(), work, epochs
        self.recipe, self.profile = work / "recipe.toml", work / "profile.csv"
        self.recipe.write_text(RECIPE)

    def call(self, *words: object) -> str:
        """Standard output of the program, which must succeed."""
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def measure(self) -> None:
        self.call("profile", self.recipe, self.dataset, "--runs=3", "--samples=96",
                  "--codecs=none", "--threads=1,2", f"--csv={self.profile}",
                  f"--temporary={self.work}")

    def plan(self, name: str, *options: str, epochs: int = 0) -> Path:
        """A plan from the profile."""
        path = self.work / f"{name}.toml"
        epochs = epochs or self.epochs
        self.call("plan", self.recipe, self.dataset, f"--epochs={epochs}", "--batch-size=8",
                  f"--profile={self.profile}", "--force", "-o", path, *options)
        return path

    def prepare(self, plan: Path) -> float:
        """Executes what a plan does offline; the seconds that it took."""
        text = plan.read_text().splitlines()
        command = next((line for line in text if line.startswith("command = ")), None)
        if command is None:
            return 0.0
        words = shlex.split(json.loads(command.split(" = ", 1)[1]))
        shutil.rmtree(words[4], ignore_errors=True)
        begun = time.monotonic()
        self.call(*words[1:])
        return time.monotonic() - begun

    def run(self, plan: Path) -> dict:
        report = self.work / f"report-{plan.stem}"
        shutil.rmtree(report, ignore_errors=True)
        self.call("run", "--plan", plan, "--no-verify", "--report", report)
        return json.loads((report / "report.json").read_text())["runs"][0]


def stored(plan: Path) -> str:
    """What a plan stores, in a word."""
    lines = [line for line in plan.read_text().splitlines() if line.startswith("stored = ")]
    return json.loads(lines[0].split(" = ", 1)[1]) if lines else "nothing"


def key(plan: Path, name: str) -> str:
    lines = [line for line in plan.read_text().splitlines() if line.startswith(f"{name} = ")]
    return lines[0].split(" = ", 1)[1].strip('"') if lines else "-"


def beats_both(cases: Cases) -> None:
    plans = {
        "the plan": cases.plan("chosen", "--pin=cache=0"),
        "nothing offline": cases.plan("nothing", "--pin=cache=0", "--pin=stored=packed"),
        "everything offline": cases.plan("everything", "--pin=cache=0",
                                         "--pin=stored=4-to_dtype", "--pin=codec=none"),
    }
    found: dict = {name: [] for name in plans}
    for _ in range(TURNS):
        for name, plan in plans.items():
            offline, run = cases.prepare(plan), cases.run(plan)
            found[name].append((offline, sum(it["seconds"] for it in run["epochs"]),
                                run["totals"]["host_core_seconds"],
                                run["totals"]["host_bytes_read"] / len(run["epochs"]) / 1e6))
    print(f"\n{cases.epochs} epochs, medians of {TURNS} turns, measured\n")
    print("| | stored | offline s | all epochs s | in all s | CPU s | MB read per epoch |")
    print("|---|---|---|---|---|---|---|")
    for name, turns in found.items():
        offline, epochs, core, megabytes = (statistics.median(it) for it in zip(*turns))
        both = statistics.median([it[0] + it[1] for it in turns])
        print(f"| {name} | {stored(plans[name])} | {offline:.2f} | {epochs:.2f} | {both:.2f} "
              f"| {core:.2f} | {megabytes:.1f} |")


def nothing_for_the_device(cases: Cases) -> None:
    words = ("--pin=cache=0", "--pin=stored=packed", "--device=emulated,cpu_ratio=0.001")
    chosen = cases.plan("with-device", *words, epochs=3)
    forced = cases.plan("forced-device", *words, "--pin=strategy=mte", epochs=2)
    print("\nA device of a thousandth of a core, medians of the later epochs, measured\n")
    print("| plan | strategy | s per epoch | batches of the device |\n|---|---|---|---|")
    for name, plan in (("as planned", chosen), ("device pinned", forced)):
        run = cases.run(plan)
        later = [it["seconds"] for it in run["epochs"][1:]]
        print(f"| {name} | {key(plan, 'strategy')} | {statistics.median(later):.2f} "
              f"| {run['totals']['device_batches']} |")


def prediction_off(cases: Cases) -> None:
    plan = cases.plan("crowded", "--pin=cache=0", "--pin=stored=packed", "--pin=workers=2")
    others = [subprocess.Popen([sys.executable, "-c", SPIN])
              for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        compared = cases.run(plan)["plan"]
    finally:
        for other in others:
            other.kill()
            other.wait()
    print(f"\nWith {len(others)} processes that take the cores: predicted "
          f"{compared['predicted']['epoch_seconds']:.3f} s, achieved "
          f"{compared['achieved']['epoch_seconds']:.3f} s ({100 * compared['error_ratio']:+.0f} %)")
    for deviation in compared["deviations"]:
        print(f"  {deviation}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--case", type=int, choices=[1, 2, 3], action="append")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    cases = Cases(arguments.program, arguments.dataset, arguments.work, arguments.epochs)
    print(f"load before: {os.getloadavg()[0]:.1f}")
    cases.measure()
    for number, case in enumerate((beats_both, nothing_for_the_device, prediction_off), 1):
        if arguments.case is None or number in arguments.case:
            case(cases)
    print(f"\nload after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
