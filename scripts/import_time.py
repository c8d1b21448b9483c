#!/usr/bin/env python3
"""Measures `import meetpoint` in a fresh interpreter, with and without NumPy already imported.

    python scripts/import_time.py [--at-most-ms 50]

The minimum over several processes, each of which imports it once, which excludes the load of other
programs. Exit code 1 if the minimum exceeds the limit.
"""

import argparse
import subprocess
import sys

PROCESSES = 15

CODE = """
import sys, time
{before}
begun = time.perf_counter()
import meetpoint
print((time.perf_counter() - begun) * 1e3)
"""


def import_ms(before):
    """Milliseconds, after these lines."""
    command = [sys.executable, "-c", CODE.format(before=before)]
    # The first one brings the files into memory.
    times = [float(subprocess.check_output(command)) for _ in range(PROCESSES + 1)][1:]
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--at-most-ms", type=float)
    limit = parser.parse_args().at_most_ms
    slow = False
    for name, before in [("a bare interpreter", ""), ("an interpreter with NumPy", "import numpy")]:
        took = import_ms(before)
        print(f"import meetpoint in {name}: {took:.1f} ms")
        slow = slow or (limit is not None and took > limit)
    if slow:
        sys.exit(f"importing takes longer than {limit} ms")


if __name__ == "__main__":
    main()
