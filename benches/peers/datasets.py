#!/usr/bin/env python3
"""Reads and writes the same photographs as a Meetpoint dataset and in the formats of others.

    benches/peers/datasets.py PHOTOS --ours PROGRAM [--samples 20000] [--rounds 5] [--work DIR]

PHOTOS is a folder of pictures, repeated under other names to a given number of samples. PROGRAM is ours:
`cargo build --release -p meetpoint-datasets --example read_speed`. Everything runs on one core, in
turns, in separate processes, unless a row says otherwise; figures are medians of the rounds, with
the page cache hot. The last table reads with nothing of the set in the page cache, ours by O_DIRECT.
A ratio above 1 is in our favour. Each reader sums up lengths, first and last bytes, which must be
those of all the others. Ours syncs its files to the drive before it ends; for the others, the
time until that is done is shown beside the time until they end. A missing peer is named with the
reason.

MosaicML's streaming imports torch and cloud clients, which its writer and reader of MDS do not
use; if they are not installed, empty modules replace them.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.metadata
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import types

PACKAGES = {
    "datadings": "datadings",
    "webdataset": "webdataset",
    "mds": "mosaicml-streaming",
    "tfrecord": "tfrecord",
    "parquet": "pyarrow",
    "hf-datasets": "datasets",
}
MODULES = {
    "datadings": ["datadings.reader", "datadings.writer"],
    "webdataset": ["webdataset"],
    "mds": [],
    "tfrecord": ["tfrecord"],
    "parquet": ["pyarrow.parquet"],
    "hf-datasets": ["datasets"],
}
SHARD_SAMPLES = 1000


def samples(folder):
    """Key, bytes and label of each file, in order of names; read as they are asked for."""
    for label, name in enumerate(sorted(os.listdir(folder))):
        with open(os.path.join(folder, name), "rb") as file:
            yield name, file.read(), label % 100


def mds_modules():
    """MDSWriter and MDSReader, with empty modules for what they do not use and is not there."""
    absent = {"torch", "torchvision", "transformers", "boto3", "botocore", "google", "oci", "azure"}
    absent |= {"paramiko", "snappy", "brotli", "zstd", "databricks", "psutil"}

    class Empty(types.ModuleType):
        __path__ = []

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path, target=None):
            if name.split(".")[0] in absent:
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
            return None

        def create_module(self, spec):
            return Empty(spec.name)

        def exec_module(self, module):
            pass

    sys.meta_path.insert(0, Finder())
    from streaming.base.format.mds.reader import MDSReader
    from streaming.base.format.mds.writer import MDSWriter

    return MDSWriter, MDSReader


# Writers: folder of pictures, place to write to.


def write_datadings(folder, to):
    from datadings.writer import FileWriter

    with FileWriter(to + ".msgpack", overwrite=True, disable=True) as writer:
        for key, image, label in samples(folder):
            writer.write({"key": key, "image": image, "label": label})


def write_webdataset(folder, to):
    import webdataset

    os.makedirs(to)
    with webdataset.ShardWriter(to + "/%05d.tar", maxcount=SHARD_SAMPLES, verbose=0) as writer:
        for key, image, label in samples(folder):
            writer.write({"__key__": key.rsplit(".", 1)[0], "jpg": image, "cls": label})


def write_mds(folder, to):
    writer, _ = mds_modules()
    for shard, rows in enumerate(chunks(samples(folder))):
        columns = {"key": "str", "image": "bytes", "label": "int"}
        mds = writer(out=f"{to}/{shard:05d}", columns=columns, size_limit=1 << 31)
        for key, image, label in rows:
            mds.write({"key": key, "image": image, "label": label})
        mds.finish()


def write_tfrecord(folder, to):
    import tfrecord

    writer = tfrecord.TFRecordWriter(to + ".tfrecord")
    for key, image, label in samples(folder):
        row = {"key": (key.encode(), "byte"), "image": (image, "byte"), "label": (label, "int")}
        writer.write(row)
    writer.close()


def write_parquet(folder, to):
    import pyarrow
    import pyarrow.parquet

    image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    schema = pyarrow.schema([("image", image), ("label", pyarrow.int64())])
    with pyarrow.parquet.ParquetWriter(to + ".parquet", schema) as writer:
        for rows in chunks(samples(folder)):
            table = [{"image": {"bytes": b, "path": k}, "label": v} for k, b, v in rows]
            writer.write_table(pyarrow.Table.from_pylist(table, schema=schema))


def write_hf_datasets(folder, to):
    import datasets

    datasets.disable_progress_bars()
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})

    def rows():
        for key, image, label in samples(folder):
            yield {"image": {"bytes": image, "path": key}, "label": label}

    with tempfile.TemporaryDirectory(dir=os.path.dirname(to)) as cache:
        made = datasets.Dataset.from_generator(rows, features=features, cache_dir=cache)
        made.save_to_disk(to)


def chunks(rows):
    held = []
    for row in rows:
        held.append(row)
        if len(held) == SHARD_SAMPLES:
            yield held
            held = []
    if held:
        yield held


# Readers: give the bytes of every picture, in order.


def read_datadings(place):
    from datadings.reader import MsgpackReader

    with MsgpackReader(place + ".msgpack") as reader:
        for sample in reader:
            yield sample["image"]


def read_webdataset(place):
    import webdataset

    shards = sorted(str(path) for path in pathlib.Path(place).glob("*.tar"))
    for sample in webdataset.WebDataset(shards, shardshuffle=False):
        yield sample["jpg"]


def read_mds(place):
    _, reader = mds_modules()
    for folder in sorted(pathlib.Path(place).iterdir()):
        index = json.loads((folder / "index.json").read_text())
        for shard in index["shards"]:
            mds = reader.from_json(str(place), folder.name, shard)
            for number in range(len(mds)):
                yield mds[number]["image"]


def read_tfrecord(place):
    import tfrecord

    for sample in tfrecord.tfrecord_loader(place + ".tfrecord", None, {"image": "byte"}):
        yield bytes(sample["image"])


def read_parquet(place):
    import pyarrow
    import pyarrow.parquet

    pyarrow.set_cpu_count(1)
    file = pyarrow.parquet.ParquetFile(place + ".parquet")
    for batch in file.iter_batches(batch_size=256, columns=["image"], use_threads=False):
        for image in batch.column(0).field("bytes"):
            yield image.as_py()


def read_hf_datasets(place):
    import datasets

    rows = datasets.load_from_disk(place).cast_column("image", datasets.Image(decode=False))
    for row in rows:
        yield row["image"]["bytes"]


def child(mode, name, source, place):
    """One measurement in this process; prints it as JSON."""
    function = globals()[f"{mode}_{name.replace('-', '_')}"]
    here = os.path.dirname(os.path.abspath(__file__))
    # This file has the name of a package that is measured.
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    # What is imported by then is not timed again.
    for module in MODULES[name]:
        importlib.import_module(module)
    if name == "mds":
        mds_modules()
    if mode == "write":
        wall, cpu = time.perf_counter(), time.process_time()
        function(source, place)
        result = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
        for file in files_of(pathlib.Path(place)):
            os.fsync(file)
        result["durable_s"] = time.perf_counter() - wall
    else:
        count = total = ends = 0
        wall, cpu = time.perf_counter(), time.process_time()
        for image in function(place):
            count += 1
            total += len(image)
            ends += image[0] << 8 | image[-1]
        result = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
        result |= {"samples": count, "bytes": total, "ends": ends}
    print(json.dumps(result))


def run(command, cores=None):
    """The JSON that a command prints, on one core unless others are named; else why not."""
    cores = cores or os.sched_getaffinity(0)
    done = subprocess.run(command, capture_output=True, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        return None, lines[-1][:200]
    return json.loads(done.stdout.strip().splitlines()[-1]), None


def peer(mode, name, source, place):
    script = os.path.abspath(__file__)
    return run([sys.executable, script, "--child", mode, name, str(source), str(place)])


def fill(folder, photos, count):
    """Links to the photographs under other names."""
    suffixes = (".jpg", ".jpeg")
    names = sorted(p for p in pathlib.Path(photos).iterdir() if p.suffix.lower() in suffixes)
    if not names:
        sys.exit(f"no .jpg or .jpeg in {photos}; name a folder of photographs")
    folder.mkdir()
    for number in range(count):
        os.link(copied(names[number % len(names)], folder.parent), folder / f"{number:06d}.jpg")


def copied(path, folder):
    """A copy of the file beside the links, since links do not cross file systems."""
    place = folder / "originals" / path.name
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, place)
    return place


def files_of(place):
    """The files of a set (`place` or `place.*`), opened one after another."""
    for found in place.parent.glob(place.name + "*"):
        for path in [found, *found.rglob("*")]:
            if path.is_file():
                with open(path, "rb") as file:
                    yield file.fileno()


def evict(place):
    """Takes the files of a set out of the page cache."""
    for file in files_of(place):
        # Only pages that are on the drive are let go.
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def median(values):
    return statistics.median(values) if values else float("nan")


def ours_in(program, mode, *arguments, cores=None):
    result, why = run([program, mode, *map(str, arguments)], cores)
    if why:
        sys.exit(f"{program} {mode}: {why}")
    return result


def measure(options, work):
    pictures = work / "pictures"
    fill(pictures, options.photos, options.samples)
    program, table = options.ours, {"write": {}, "read": {}}
    skipped = {}
    places = {name: work / f"{name}.out" / "set" for name in PACKAGES}
    for turn in range(options.rounds):
        for mode, how in [("pack", "header"), ("pack as it comes", "decode")]:
            made = ours_in(program, "pack", pictures, work / "ours.set", how)
            table["write"].setdefault(f"ours, {mode}", []).append(made)
        made = ours_in(program, "pack", pictures, work / "all.set", "header", cores=options.cores)
        name = f"ours, {len(options.cores)} cores"
        table["write"].setdefault(name, []).append(made)
        shutil.rmtree(work / "all.set")
        for name, place in places.items():
            if name in skipped:
                continue
            shutil.rmtree(place.parent, ignore_errors=True)
            place.parent.mkdir()
            result, why = peer("write", name, pictures, place)
            if why:
                skipped[name] = why
            else:
                table["write"].setdefault(name, []).append(result)
    total = sum(path.stat().st_size for path in pictures.iterdir())
    for turn in range(options.rounds):
        # The first round only warms the page cache.
        for mode in ["sequential", "mapped"]:
            result = ours_in(program, mode, work / "ours.set", 1)["rounds"][0]
            if turn > 0:
                table["read"].setdefault(f"ours, {mode}", []).append(result)
        for name, place in places.items():
            if name in skipped:
                continue
            result, why = peer("read", name, pictures, place)
            if why:
                skipped[name] = why
                continue
            if (result["samples"], result["bytes"]) != (options.samples, total):
                sys.exit(f"{name} reads {result}, written were {options.samples}, {total} bytes")
            if turn > 0:
                table["read"].setdefault(name, []).append(result)
    table["read cold"] = {}
    for _ in range(options.rounds):
        for mode in ["direct", "sequential"]:
            evict(work / "ours.set")
            result = ours_in(program, mode, work / "ours.set", 1, 32)["rounds"][0]
            table["read cold"].setdefault(f"ours, {mode}", []).append(result)
        for name, place in places.items():
            if name in skipped:
                continue
            evict(place)
            result, why = peer("read", name, pictures, place)
            if why:
                skipped[name] = why
            else:
                table["read cold"].setdefault(name, []).append(result)
    direct = {"random": [], "plain": []}
    for turn in range(options.rounds):
        for mode in direct:
            direct[mode].append(ours_in(program, mode, work / "ours.set", 1, 32)["rounds"][0])
    return table, direct, skipped, total


def show(table, direct, skipped, total, options):
    version = {name: importlib.metadata.version(package) for name, package in PACKAGES.items()
               if name not in skipped}
    print(f"{options.samples} samples, {total / 1e6:.1f} MB, {options.rounds} rounds, one core")
    print(", ".join(f"{name} {number}" for name, number in version.items()))
    for mode, results in table.items():
        is_write = mode == "write"
        durable = f"{'on the drive':>14}{'our speed':>12}" if is_write else ""
        print(f"\n{mode:<24}{'MB/s':>10}{'CPU s/GB':>12}{'our speed':>12}{'our CPU':>10}{durable}")
        rows = {}
        for name, runs in results.items():
            wall, cpu, on_drive = (
                median([run.get(key, run["wall_s"]) for run in runs])
                for key in ("wall_s", "cpu_s", "durable_s")
            )
            rows[name] = (total / 1e6 / wall, cpu / total * 1e9, total / 1e6 / on_drive)
        own = [row for name, row in rows.items() if name.startswith("ours")][0]
        for name, (speed, cpu, durable) in rows.items():
            ratios = f"{own[0] / speed:>11.2f}x{cpu / own[1]:>9.2f}x"
            on_drive = f"{durable:>14.0f}{own[2] / durable:>11.2f}x" if is_write else ""
            print(f"{name:<24}{speed:>10.0f}{cpu:>12.3f}{ratios}{on_drive}")
    wall = {mode: median([r["wall_s"] for r in runs]) for mode, runs in direct.items()}
    ours, alone = (total / 1e6 / wall[mode] for mode in ("random", "plain"))
    print(f"\nrandom, depth 32: {ours:.0f} MB/s, the engine alone {alone:.0f} MB/s, "
          f"ratio {ours / alone:.2f}, "
          f"{'O_DIRECT' if direct['plain'][0]['direct'] else 'through the page cache'}")
    for name, why in skipped.items():
        print(f"skipped: {name}: {why}")


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", help="folder of photographs")
    parser.add_argument("--ours", required=True, help="the program read_speed")
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", help="folder to work in, on the drive to measure")
    parser.add_argument("--json", help="file for all results")
    options = parser.parse_args()
    options.rounds = max(options.rounds, 2)
    options.cores = os.sched_getaffinity(0)
    # Children inherit it: everybody has the same core.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        table, direct, skipped, total = measure(options, pathlib.Path(work))
    show(table, direct, skipped, total, options)
    if options.json:
        everything = {"table": table, "random": direct, "skipped": skipped, "bytes": total}
        pathlib.Path(options.json).write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
