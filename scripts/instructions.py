"""Counts the instructions of some work under valgrind and compares them with a baseline.

    scripts/instructions.sh            builds, counts and compares
    scripts/instructions.sh --renew    builds, counts and writes a new baseline

The counts are those of callgrind, per unit of work: a call of the scheduler, a decoded photograph,
a prepared sample, a read sample. Work is done a few times and many times; the difference leaves out
the start. They depend on the compiler and the instruction set, which the baseline names: with
others the counts are printed and not compared.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

BASELINE = Path(__file__).parent.parent / "benches" / "instructions" / "baseline.json"
# Largest difference from the baseline, as a share.
TOLERANCE = 0.03
FEW, MANY = 2, 8


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True)


def compiler():
    return re.search(r"rustc [0-9.]+", output("rustc", "--version").stdout).group()


def counted(program, work, times):
    """Units of work and instructions of a run."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    ran = output(*valgrind, program, work, str(times))
    return int(ran.stdout), int(re.search(r"Collected : ([0-9]+)", ran.stderr).group(1))


def per_unit(program, work):
    few_units, few = counted(program, work, FEW)
    many_units, many = counted(program, work, MANY)
    return (many - few) / (many_units - few_units)


def main(program, renew):
    # The instruction set is the one of the processor that valgrind shows.
    listed = output("valgrind", "-q", "--tool=none", program, "list").stdout
    instruction_set, *works = listed.split()
    setting = {"compiler": compiler(), "instruction_set": instruction_set}
    counts = {work: round(per_unit(program, work), 1) for work in works}
    if renew:
        BASELINE.write_text(json.dumps({**setting, "instructions": counts}, indent=2) + "\n")
        print(f"wrote {BASELINE}")
        return 0
    baseline = json.loads(BASELINE.read_text())
    expected = baseline.pop("instructions")
    failed, unknown = [], sorted({*counts} ^ {*expected})
    for work in sorted({*counts, *expected}):
        count, before = counts.get(work), expected.get(work)
        change = count / before - 1 if count and before else None
        shown = "not in both" if change is None else f"{change:+.1%}"
        print(f"{work:20} {count or 0:>14,.1f} a unit, baseline {before or 0:>14,.1f}: {shown}")
        if change is not None and abs(change) > TOLERANCE:
            failed.append(work)
    if unknown:
        print(f"counted or in the baseline, but not both: {', '.join(unknown)}; renew the baseline")
        return 1
    if setting != baseline:
        print(f"SKIP: the baseline is of {baseline}, this is {setting}; nothing was compared")
        return 0
    if failed:
        print(
            f"more than {TOLERANCE:.0%} off: {', '.join(failed)}. Find out why; if the change is "
            "meant, renew the baseline with scripts/instructions.sh --renew and commit it"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--renew" in sys.argv[2:]))
