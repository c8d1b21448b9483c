#!/usr/bin/env python3
"""Prints where the time of a build goes, from the report of `cargo build --timings`.

    cargo build --release --timings
    scripts/build_times.py target/cargo-timings/cargo-timing.html [ANOTHER.html] [--top N]

With a second report it prints both side by side. Times are those that each package occupied a job,
so they compare only between builds with the same number of jobs on a machine with nothing else to
do.
"""

import argparse
import collections
import json
import pathlib
import re
import sys


def seconds(report: pathlib.Path) -> tuple[dict[str, float], float]:
    """Seconds of each package, and from the first start to the last end."""
    found = re.search(r"const UNIT_DATA = (\[.*?\]);\n", report.read_text(), re.DOTALL)
    if found is None:
        sys.exit(f"{report}: no report of cargo build --timings")
    units = json.loads(found.group(1))
    packages: dict[str, float] = collections.defaultdict(float)
    for unit in units:
        packages[unit["name"]] += unit["duration"]
    return packages, max(unit["start"] + unit["duration"] for unit in units)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", nargs="+", type=pathlib.Path)
    parser.add_argument("--top", type=int, default=20, help="packages to list (20)")
    options = parser.parse_args()
    reports = [seconds(report) for report in options.reports]
    names = sorted(
        set().union(*(packages for packages, _ in reports)),
        key=lambda name: -max(packages.get(name, 0.0) for packages, _ in reports),
    )

    def row(name: str, values: list[float]) -> None:
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in values) + " |")

    print("| s | " + " | ".join(report.parent.parent.name for report in options.reports) + " |")
    print("|---|" + "---|" * len(reports))
    row("from start to end", [end for _, end in reports])
    row("sum of packages", [sum(packages.values()) for packages, _ in reports])
    for name in names[: options.top]:
        row(name, [packages.get(name, 0.0) for packages, _ in reports])


if __name__ == "__main__":
    main()
