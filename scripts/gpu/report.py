#!/usr/bin/env python3
"""Writes the report of scripts/gpu-check, in Markdown, from the files of its steps.

    python scripts/gpu/report.py FOLDER

The folder has `steps` (a line for each step), and, of the steps that ran, `bench.json`, `peers.log`,
`deliver.log`, `train-*.log`. What is missing is left out.
"""

import datetime
import json
import pathlib
import subprocess
import sys


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    print("# Checks on a GPU\n")
    print(f"{datetime.date.today()}, `scripts/gpu-check`. {machine()}\n")
    print("## Steps\n")
    print((folder / "steps").read_text())
    peers = read_json(folder / "peers.log")
    bench = read_json(folder / "bench.json")
    if bench:
        print("## JPEG files in memory to normalised tensors on the GPU\n")
        print_bench(bench, peers)
    if peers:
        print("## nvJPEG through torchvision, and a resize on the GPU\n")
        print(f"torch {peers['torch']}, torchvision {peers['torchvision']}, batches of {peers['batch']}.\n")
        print("| pipeline | images/s |\n|---|---|")
        for name, rate in peers["images_per_second"].items():
            print(f"| {name.replace('_', ' ')} | {rate:,.0f} |")
        print(f"\nA copy inside the GPU's memory moves {peers['copy_bytes_per_second'] / 1e12:.2f} TB/s.\n")
    for title, name in (("Delivery", "deliver"), ("Training", "train")):
        for path in sorted(folder.glob(f"{name}*.log")):
            text = path.read_text().strip()
            if text:
                print(f"## {title}: {path.stem}\n\n```text\n{text}\n```\n")


def machine() -> str:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"nvidia-smi: {error}."
    return "; ".join(line.strip() for line in answer.splitlines()) + "."


def read_json(path: pathlib.Path) -> dict | None:
    """The last line of a file, or all of it, as JSON."""
    if not path.exists():
        return None
    text = path.read_text().strip()
    for candidate in (text, text.splitlines()[-1] if text else ""):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    return None


def print_bench(bench: dict, peers: dict | None) -> None:
    for note in bench["notes"]:
        print(f"- {note}")
    peer = None
    if peers:
        peer = peers["images_per_second"]["nvjpeg_decode_crop_resize_normalize"]
    print("\n| case | value | | over the CPU | over nvJPEG + resize |\n|---|---|---|---|---|")
    for row in bench["rows"]:
        is_rate = row["unit"] == "images/s"
        value = f"{row['value']:,.0f}" if is_rate else f"{row['value']:.2f}"
        over_cpu = f"{row['ratio']:.2f}" if row["ratio"] else ""
        over_peer = f"{row['value'] / peer:.2f}" if is_rate and peer else ""
        print(f"| {row['case']} | {value} | {row['unit']} | {over_cpu} | {over_peer} |")
    print()


if __name__ == "__main__":
    main()
