"""Reproduces the findings of the PRESTO paper on this machine, with generated data.

    pip install numpy pillow soundfile
    python3 python/studies/presto.py meetpoint WORK [--quick] [--samples N] [--only NAME …]

Generates a set for each shipped recipe ``presto-*`` (``scripts/presto_data.py``: the kinds and
sizes of the paper's samples), packs and profiles it, and runs a sweep of sample sizes. Prints, for
each finding, whether it holds here, with figures and the reason; then the table of each pipeline,
and the time that the loader takes for each sample beside that of the paper. ``WORK/presto.json``
has all of it. ``--quick`` uses few samples and one run.

Our recipes crop before they convert to float, so that a stored result after the conversion needs a
fixed crop: where a recipe has ``random_crop``, it is profiled with ``center_crop``.
"""

import argparse
import importlib.util
import json
import os
import shlex
import struct
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import presto_findings as findings

ROOT = Path(__file__).resolve().parents[2]
#: Megabytes of a sample, as in the paper.
SIZES = [20.5, 10.2, 5.1, 2.6, 1.3, 0.64, 0.32, 0.16, 0.08, 0.04, 0.02, 0.01]
GREY_LAST = ["decode", "resize", "grayscale", "center_crop"]
GREY_FIRST = ["decode", "grayscale", "resize", "center_crop"]
KEYS = {"resize": "size = 256\n", "center_crop": "size = 224\n"}


class Program:
    """The command line."""

    def __init__(self, program: str) -> None:
        self.program = str(Path(program).resolve())

    def json(self, *words: object) -> dict:
        command = [self.program, *map(str, words), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout)


def generators() -> dict:
    """What writes the files of each recipe."""
    path = ROOT / "scripts" / "presto_data.py"
    spec = importlib.util.spec_from_file_location("presto_data", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SETS


def generate(work: Path, name: str, samples: int) -> Path:
    """A folder of files for a recipe."""
    folder = work / "files" / name
    if len(list(folder.glob("*/*"))) != samples:
        script = ROOT / "scripts" / "presto_data.py"
        subprocess.run([sys.executable, script, work / "files", f"--samples={samples}", "--only",
                        name], check=True, stdout=subprocess.DEVNULL)
    return folder


def pack(program: Program, source: Path, dataset: Path) -> None:
    program.json("pack", source, dataset, "--force")


def profile(program: Program, recipe: Path, dataset: Path, runs: int, samples: int,
            codecs: str = "none,lz4,zstd") -> list:
    """The strategies of a recipe without those that lose detail, as measured."""
    cores = len(os.sched_getaffinity(0))
    words = ["profile", recipe, dataset, f"--runs={runs}", f"--samples={samples}",
             f"--codecs={codecs}", f"--threads={','.join(sorted({'1', str(cores)}))}"]
    rows = []
    for row in program.json(*words)["results"]:
        stored = row["form"]
        if stored == "jpeg":
            continue
        if stored == "prepared":
            stored = f"{row['operations']}-{row['operation']}"
        is_cold = row["cache"] == "cold"
        rows.append(findings.Strategy(
            stored, row["operations"], row["codec"], row["cache"],
            row["cold_per_second"] if is_cold else row["per_second"], row["stored_bytes"],
            row["offline_seconds"], row["threads"]))
    return rows


def chain(work: Path, name: str, operations: list) -> Path:
    """A recipe of these operations."""
    path = work / f"{name}.toml"
    path.write_text("".join(f'[[operation]]\nname = "{operation}"\n{KEYS.get(operation, "")}'
                            for operation in operations))
    return path


def npy(size: int, seed: int) -> bytes:
    """A NumPy file of one channel of float32 that takes ``size`` bytes without its header."""
    count = size // 4
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (1, {count}), }}"
    header = header.ljust(117) + "\n"
    unit = struct.pack("<256f", *(((seed + at) % 251) / 251 for at in range(256)))
    content = (unit * (size // len(unit) + 1))[:4 * count]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def run_job(program: Program, work: Path, name: str, text: str) -> dict:
    """The run of a job with one strategy."""
    path = work / f"{name}.toml"
    path.write_text(text)
    return program.json("run", path, "--no-verify", "--report", work / f"report-{name}")["runs"][0]


def sweep(program: Program, work: Path, total: int) -> list:
    """Processor time of the loader for samples of each size, from memory.

    All operations are done by then: what is left is to find, copy and check a sample. The cost of
    an epoch is the difference between many epochs and few, so that opening counts for nothing.
    """
    rows = []
    for megabytes in SIZES:
        size = int(1e6 * megabytes) // 4096 * 4096
        count = max(4, total // size)
        folder, dataset = work / "sweep" / str(size), work / f"sweep-{size}.set"
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / f"{number:07}.npy").write_bytes(npy(size, number))
        pack(program, folder, dataset)
        batch = max(1, min(256, count // 4, (4 << 20) // size))
        few, many = 2, 8
        text = (f'dataset = "{dataset.name}"\nbatch_size = {batch}\nworkers = 0\ncache = '
                f'"{2 * total + (64 << 20)}B"\nmemory_budget = "256MiB"\n'
                '[[recipe.operation]]\nname = "decode_signal"\nnum_channels = 1\n'
                f'[[recipe.operation]]\nname = "fix_length"\nlength = {size // 4}\n')
        cpu = {}
        for epochs in (few, many):
            job = f"epochs = {epochs}\n{text}"
            # What else the machine does only adds to the time: the least of three counts.
            turns = [run_job(program, work, f"sweep-{size}-{epochs}", job) for _ in range(3)]
            cpu[epochs] = min(run["totals"]["host_core_seconds"] for run in turns)
        samples = (many - few) * count
        seconds = (cpu[many] - cpu[few]) / samples
        rows.append({"bytes": size, "samples": count, "seconds": seconds,
                     "seconds_per_byte": seconds / size})
        for path in folder.iterdir():
            path.unlink()
    return rows


def shuffled(program: Program, work: Path, dataset: Path, samples: int) -> findings.Finding:
    """Processor time of epochs in order and shuffled."""
    cpu = {}
    for sampler in ("sequential", "shuffled"):
        text = (f'dataset = "{dataset.name}"\nepochs = 40\nbatch_size = 8\nworkers = 0\n'
                f'[sampler]\nname = "{sampler}"\n'
                '[[recipe.operation]]\nname = "decode_signal"\nnum_channels = 2\n'
                '[[recipe.operation]]\nname = "fix_length"\nlength = 64000\n')
        cpu[sampler] = run_job(program, work, sampler, text)["totals"]["host_core_seconds"]
    return findings.shuffling(cpu["sequential"], cpu["shuffled"], 40 * samples)


def greys(program: Program, work: Path, dataset: Path, runs: int, samples: int) -> list:
    """Findings 3 and 11: where channels are merged."""
    last = profile(program, chain(work, "grey-last", GREY_LAST), dataset, runs, samples, "none")
    first = profile(program, chain(work, "grey-first", GREY_FIRST), dataset, runs, samples, "none")
    stored = {"codec": "none", "cache": "cold"}
    merged = findings.select(last, stored="3-grayscale", **stored)[0]
    not_merged = findings.select(last, stored="2-resize", **stored)[0]
    early = findings.shrink_early(findings.rate(last, stored="3-grayscale", **stored),
                                  findings.rate(last, stored="2-resize", **stored),
                                  not_merged.stored_bytes / merged.stored_bytes)
    swapped = findings.swapping(findings.rate(last, stored="packed", **stored),
                                findings.rate(first, stored="packed", **stored))
    return [early, swapped]


def table(rows: list) -> list:
    """The strategies of a pipeline as the paper lists them: without codec, the best threads."""
    lines = ["| stored | MB | cold/s | page cache/s | application cache/s | offline s |",
             "|---|---|---|---|---|---|"]
    stored = list(dict.fromkeys(it.stored for it in rows))
    for name in stored:
        rates = [findings.rate(rows, stored=name, codec="none", cache=cache)
                 for cache in ("cold", "page", "application")]
        of = findings.select(rows, stored=name, codec="none")[0]
        figures = " | ".join("-" if it is None else f"{it:.0f}" for it in rates)
        lines.append(f"| {name} | {of.stored_bytes / 1e6:.1f} | {figures} "
                     f"| {of.offline_seconds:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("work", type=Path)
    parser.add_argument("--quick", action="store_true", help="few samples, one run")
    parser.add_argument("--samples", type=int, help="samples of each set")
    parser.add_argument("--only", nargs="+", help="recipes instead of all presto-*")
    arguments = parser.parse_args()
    program, work = Program(arguments.program), arguments.work
    work.mkdir(parents=True, exist_ok=True)
    samples = arguments.samples or (12 if arguments.quick else 64)
    runs = 1 if arguments.quick else 3
    shipped = sorted({it["name"] for it in program.json("recipe", "list")["recipes"]
                      if it["name"].startswith("presto-")})
    shipped = [name for name in shipped if name in (arguments.only or shipped)]
    load = os.getloadavg()[0]
    made, pipelines, partial, absent = generators(), {}, {}, []
    for name in shipped:
        source = "presto-cv" if name == "presto-cv-grey" else name
        if source not in made:
            absent.append(name)
            continue
        print(f"{name}: {samples} samples", file=sys.stderr)
        dataset = work / f"{source}.set"
        pack(program, generate(work, source, samples), dataset)
        recipe = work / f"{name}.toml"
        text = subprocess.run([program.program, "recipe", "show", name], check=True,
                              capture_output=True, text=True).stdout
        text = text.replace('"random_crop"', '"center_crop"')
        # The generator writes the files of `presto-nlp` beside its pages.
        for file in ("tokenizer.json", "embedding.npy"):
            text = text.replace(f'"{file}"', f'"files/{file}"')
        recipe.write_text(text)
        pipelines[name] = profile(program, recipe, dataset, runs, samples)
        if not arguments.quick:
            partial[name] = profile(program, recipe, dataset, 1, max(2, samples // 8))
    seen = [findings.concatenating(pipelines), findings.last_is_not_best(pipelines),
            findings.compression(pipelines), findings.tuning(pipelines),
            findings.page_cache(pipelines), findings.application_cache(pipelines)]
    if partial:
        seen.append(findings.sampling(pipelines, partial))
    if "presto-cv" in pipelines:
        seen += greys(program, work, work / "presto-cv.set", runs, samples)
    if "presto-nilm" in pipelines:
        seen.append(shuffled(program, work, work / "presto-nilm.set", samples))
    swept = sweep(program, work, (32 << 20) if arguments.quick else (256 << 20))
    seen.append(findings.small_samples(swept))
    line = findings.overhead(swept)
    for finding in sorted(seen, key=lambda it: it.number):
        print(f"\n{finding.number}. {finding.what}: {finding.verdict}")
        for figure in finding.figures:
            print(f"   {figure}")
        if finding.why:
            print(f"   {finding.why}")
    tested = {it.number for it in seen}
    for number in sorted(set(range(1, 12)) - tested):
        print(f"\n{number}. {findings.UNTESTED} (--quick or --only)")
    for name, rows in pipelines.items():
        print(f"\n{name}\n")
        print("\n".join(table(rows)))
    print("\n| MB/sample | samples | us of a sample | ns of a byte |\n|---|---|---|---|")
    for row in swept:
        print(f"| {row['bytes'] / 1e6:.2f} | {row['samples']} | {1e6 * row['seconds']:.1f} "
              f"| {1e9 * row['seconds_per_byte']:.3f} |")
    print(f"\nof a sample {line['sample_us']:.2f} us and of a byte {line['byte_ns']:.3f} ns, from "
          f"the application cache; PRESTO: {findings.PRESTO_OVERHEAD_US['application']:.0f} us")
    for name in absent:
        print(f"{name}: {findings.UNTESTED}, scripts/presto_data.py writes no files for it")
    print(f"load before {load:.1f}, after {os.getloadavg()[0]:.1f}; CPU times of the sweep")
    (work / "presto.json").write_text(json.dumps({
        "findings": [asdict(it) for it in seen],
        "pipelines": {name: [asdict(it) for it in rows] for name, rows in pipelines.items()},
        "sweep": swept, "overhead": line, "absent": absent}, indent=1) + "\n")


if __name__ == "__main__":
    main()
