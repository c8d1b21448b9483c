#!/usr/bin/env python3
"""Measures loaders that train from an object store: the same photographs, server, order and cache.

    python benches/peers/stores.py PHOTOS [--samples 2000] [--rounds 5] [--latency-ms 0] [--shuffle]
                                          [--server PROGRAM] [--only NAME ...] [--markdown FILE]

PHOTOS holds JPEGs, which are repeated under other names. They are written as a Meetpoint dataset,
MDS, LitData chunks and WebDataset tar files, each by its own writer, in parts of the same size, and
uploaded to one S3 server on this machine (s3s-fs, built by Cargo unless --server names the
program). The server has the last core, the loader the others, with a worker for each of them.
--latency-ms delays each answer.

Each loader decodes, crops at random to 224, flips, and gives batches of 50 as uint8, channels
first, with labels, in the order of the dataset. Peers use torchvision on tensors, which is faster
than its operations on Pillow's images. The cache may hold two parts. Every round starts a
new process with an empty cache and runs two epochs; the first one includes opening the dataset.
Loaders take turns, and figures are medians. The column "of the best peer" leaves out peers whose
cache exceeded its limit. Bytes are those that the server sent, headers included. A peer that cannot
be measured is named with the reason. For meaningful figures, the machine must be idle.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from loaders import cpu_seconds

BATCH, SIDE, CLASSES = 50, 224, 10
BUCKET = "bench"
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Parts that a cache may hold.
CACHED_PARTS = 2


# Loaders: each takes its cache folder, a size, workers and whether to shuffle, and gives a function
# that begins an epoch.


def transform():
    """From the bytes of a file to a tensor, as torchvision does it fastest."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip()])

    def apply(data):
        if not isinstance(data, torch.Tensor):
            file = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            data = decode_jpeg(file, mode=ImageReadMode.RGB)
        return steps(data)

    return apply


def meetpoint():
    import meetpoint as library
    from meetpoint import transforms as T

    recipe = T.Compose([T.RandomResizedCrop(SIDE), T.RandomHorizontalFlip(), T.ToImage()])

    def make(cache, cache_bytes, workers, shuffle):
        loader = library.Loader(
            f"s3://{BUCKET}/meetpoint",
            recipe=recipe,
            batch_size=BATCH,
            shuffle=shuffle,
            workers=workers,
            cache_dir=cache,
            cache_size=cache_bytes,
        )
        return lambda: iter(loader)

    return make, f"meetpoint {library.__version__}"


def mds():
    import streaming
    import torch

    apply = transform()

    class Pictures(streaming.StreamingDataset):
        def __getitem__(self, index):
            row = super().__getitem__(index)
            return apply(row["image"]), row["label"]

    def make(cache, cache_bytes, workers, shuffle):
        streaming.base.util.clean_stale_shared_memory()
        data = Pictures(
            remote=f"s3://{BUCKET}/mds",
            local=str(cache),
            cache_limit=cache_bytes,
            shuffle=shuffle,
            batch_size=BATCH,
        )
        loader = torch.utils.data.DataLoader(
            data, BATCH, num_workers=workers, persistent_workers=True
        )
        return lambda: iter(loader)

    return make, f"mosaicml-streaming {streaming.__version__}"


def litdata():
    import litdata as library
    from litdata.streaming import downloader

    # LitData does not pass a setting for servers without TLS to the client that prefetches.
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    apply = transform()

    def pair(sample):
        return apply(sample["image"]), sample["label"]

    def make(cache, cache_bytes, workers, shuffle):
        data = library.StreamingDataset(
            f"s3://{BUCKET}/litdata",
            cache_dir=str(cache),
            max_cache_size=cache_bytes,
            shuffle=shuffle,
            storage_options={
                "endpoint_url": os.environ["AWS_ENDPOINT_URL"],
                "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
                "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
                "region_name": os.environ["AWS_REGION"],
            },
            transform=pair,
        )
        loader = library.StreamingDataLoader(
            data, batch_size=BATCH, num_workers=workers, persistent_workers=True
        )
        return lambda: iter(loader)

    return make, f"litdata {library.__version__}"


def webdataset(caches):
    import boto3
    import webdataset as library
    from webdataset.gopen import gopen_schemes

    apply = transform()
    clients = {}

    def opened(url, mode="rb", bufsize=8192, **_):
        # A client for each process: it must not be used after a fork.
        client = clients.get(os.getpid()) or boto3.client("s3")
        clients[os.getpid()] = client
        bucket, key = url.removeprefix("s3://").split("/", 1)
        return client.get_object(Bucket=bucket, Key=key)["Body"]

    gopen_schemes["s3"] = opened

    def make(cache, cache_bytes, workers, shuffle):
        found = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="webdataset/")
        urls = sorted(f"s3://{BUCKET}/{it['Key']}" for it in found["Contents"])
        more = {"cache_dir": str(cache), "cache_size": cache_bytes} if caches else {}
        data = library.WebDataset(urls, shardshuffle=len(urls) if shuffle else False, **more)
        data = data.shuffle(200) if shuffle else data
        data = data.to_tuple("jpg", "cls").map_tuple(apply, int).batched(BATCH)
        loader = library.WebLoader(
            data, batch_size=None, num_workers=workers, persistent_workers=True
        )
        return lambda: iter(loader)

    cached = "files in its cache" if caches else "streamed, no cache"
    return make, f"webdataset {library.__version__}, boto3, {cached}"


MAKERS = {
    "meetpoint": meetpoint,
    "mds": mds,
    "litdata": litdata,
    "webdataset": lambda: webdataset(caches=False),
    "webdataset, cache": lambda: webdataset(caches=True),
}


def child(name, folder, options):
    """Measures one loader once; prints a line after each epoch and waits for one."""
    os.sched_setaffinity(0, options["cores"])
    cache = folder / "cache"
    cache.mkdir(mode=0o700)
    make, version = MAKERS[name]()
    cpu, begun = cpu_seconds(), time.perf_counter()
    begin = make(cache, options["cache_bytes"], len(options["cores"]), options["shuffle"])
    for epoch in range(2):
        count, labels_sum, first = 0, 0, None
        for images, labels in begin():
            first = first or time.perf_counter() - begun
            assert tuple(images.shape[1:]) == (3, SIDE, SIDE), images.shape
            assert str(images.dtype).endswith("uint8"), images.dtype
            count += len(images)
            labels_sum += sum(int(it) for it in labels)
        elapsed = time.perf_counter() - begun
        row = {"version": version, "samples": count, "labels": labels_sum, "first_batch_s": first}
        row |= {"samples_per_second": count / elapsed, "cpu_s": cpu_seconds() - cpu}
        print(json.dumps(row | {"epoch": epoch}), flush=True)
        # The other process reads the counts of the server meanwhile.
        sys.stdin.readline()
        cpu, begun = cpu_seconds(), time.perf_counter()
    # The threads of some libraries end slowly.
    os._exit(0)


# Writers: each takes the samples and a folder to write to.


def as_litdata(sample):
    """A sample as LitData's documentation stores pictures: it keeps the file of a JPEG."""
    from PIL import Image

    path, label = sample
    return {"image": Image.open(path), "label": label}


def write_all(samples, folder, part_bytes):
    """Writes the dataset in every form; returns the names of forms that failed, with reasons."""
    failed = {}

    def write_meetpoint(to):
        import meetpoint as library

        library.pack(folder / "pictures", to, follow_links=True, part_size=part_bytes)

    def write_mds(to):
        import streaming

        # MDS refuses a cache of fewer than four shards.
        size = part_bytes // 2
        columns = {"image": "bytes", "label": "int"}
        with streaming.MDSWriter(out=str(to), columns=columns, size_limit=size) as writer:
            for path, label in samples:
                writer.write({"image": path.read_bytes(), "label": label})

    def write_litdata(to):
        import litdata as library

        inputs = [(str(path), label) for path, label in samples]
        library.optimize(as_litdata, inputs, str(to), chunk_bytes=part_bytes, num_workers=1)

    def write_webdataset(to):
        import webdataset as library

        to.mkdir()
        pattern = str(to / "%05d.tar")
        with library.ShardWriter(pattern, maxsize=part_bytes, verbose=0) as writer:
            for number, (path, label) in enumerate(samples):
                row = {"__key__": f"{number:06}", "jpg": path.read_bytes(), "cls": str(label)}
                writer.write(row)

    writers = {
        "meetpoint": write_meetpoint,
        "mds": write_mds,
        "litdata": write_litdata,
        "webdataset": write_webdataset,
    }
    for name, write in writers.items():
        try:
            write(folder / name)
        except Exception as error:
            if name == "meetpoint":
                raise
            failed[name] = f"{type(error).__name__}: {error}"[:300]
    return failed


def link(pictures, folder, count):
    """Links pictures to names in folders of classes; returns paths and labels."""
    files = sorted(path for path in pictures.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"{pictures} holds no JPEG")
    samples = []
    for number in range(count // BATCH * BATCH):
        label = number * CLASSES // count
        named = folder / "pictures" / f"class{label}" / f"{number:06}.jpg"
        named.parent.mkdir(parents=True, exist_ok=True)
        named.symlink_to(files[number % len(files)].resolve())
        samples.append((named, label))
    return samples


# The server.


class Server:
    """An S3 server on one core, and its counts."""

    def __init__(self, program, folder, latency_ms, core):
        folder.mkdir()
        command = [program, str(folder), str(latency_ms)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        os.sched_setaffinity(self.process.pid, {core})
        endpoint = self.process.stdout.readline().strip()
        self.environment = {
            "AWS_ENDPOINT_URL": endpoint,
            # The name of the variable that MDS reads.
            "S3_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def counts(self):
        """Requests and bytes sent so far."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def upload(self, folder, names):
        import boto3

        os.environ.update(self.environment)
        config = boto3.session.Config(request_checksum_calculation="when_required")
        client = boto3.client("s3", config=config)
        client.create_bucket(Bucket=BUCKET)
        sizes = {}
        for name in names:
            files = sorted(path for path in (folder / name).rglob("*") if path.is_file())
            for path in files:
                key = str(path.relative_to(folder))
                client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
            sizes[name] = sum(path.stat().st_size for path in files)
        return sizes

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def server_program():
    """Builds the server; returns its path."""
    command = ["cargo", "build", "--release", "-p", "meetpoint-s3-server", "--features", "server"]
    run = subprocess.run(
        [*command, "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    built = [json.loads(line) for line in run.stdout.splitlines()]
    return next(it["executable"] for it in built if it.get("executable"))


def allocated_bytes(folder):
    """Bytes that files below a folder take on the disk."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512 if path.is_file() else 0
        except OSError:
            continue
    return total


def measure(name, server, options, expected):
    """Two epochs of a loader in a new process with an empty cache: rows, or the reason of none."""
    with tempfile.TemporaryDirectory(prefix="stores-") as temporary:
        folder = pathlib.Path(temporary)
        command = [sys.executable, __file__, str(folder), "--child", name]
        command += ["--options", json.dumps(options)]
        environment = {**os.environ, **server.environment, "OMP_NUM_THREADS": "1"}
        rows, before = [], server.counts()
        with open(folder / "stderr", "w+") as stderr:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
            for line in process.stdout:
                if not line.startswith('{"version"'):
                    continue
                row, after = json.loads(line), server.counts()
                row["bytes"] = after["bytes"] - before["bytes"]
                row["requests"] = after["requests"] - before["requests"]
                row["cache_bytes"] = allocated_bytes(folder / "cache")
                rows.append(row)
                if (row["samples"], row["labels"]) != expected:
                    process.kill()
                    return None, f"an epoch gave {row['samples']} samples of {expected[0]}"
                before = server.counts()
                process.stdin.write("\n")
                process.stdin.flush()
            process.wait()
            stderr.seek(0)
            words = stderr.read().strip().splitlines() or ["it said nothing"]
        if len(rows) != 2:
            # The last line may be a bracket.
            said = next((line for line in reversed(words) if "rror" in line), words[-1])
            return None, f"it ended with {process.returncode}: {said.strip()[:300]}"
    return rows, None


def table(found, sizes, cache_bytes):
    """A table in Markdown: medians over rounds."""
    head = ["loader", "samples/s, first epoch", "samples/s, second epoch", "of the best peer",
            "first batch, s", "bytes fetched, first epoch", "second epoch", "requests",
            "CPU, ms a sample", "cache, MiB", "what"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]

    def median(name, epoch, key):
        return statistics.median(rows[epoch][key] for rows in found[name])

    def cached_bytes(name):
        return max(row["cache_bytes"] for rows in found[name] for row in rows)

    def keeps_limit(name):
        return cached_bytes(name) <= 1.05 * cache_bytes

    # Peers whose cache exceeded its limit are not comparable.
    peers = [name for name in found if name != "meetpoint" and keeps_limit(name)]
    best = [
        max((median(name, epoch, "samples_per_second") for name in peers), default=float("nan"))
        for epoch in range(2)
    ]
    for name in found:
        rates = [median(name, epoch, "samples_per_second") for epoch in range(2)]
        set_bytes = sizes[name.split(",")[0]]
        ratios = " / ".join(f"{rate / peer:.2f}" for rate, peer in zip(rates, best))
        fetched = [median(name, epoch, "bytes") / set_bytes for epoch in range(2)]
        cells = [name, *(f"{rate:.0f}" for rate in rates), ratios]
        cells += [f"{median(name, 0, 'first_batch_s'):.2f}", *(f"{it:.2f} x" for it in fetched)]
        cells += [f"{median(name, 0, 'requests'):.0f}"]
        cells += [f"{1e3 * median(name, 1, 'cpu_s') / found[name][0][1]['samples']:.2f}"]
        above = "" if keeps_limit(name) else ", above its limit"
        cells += [f"{cached_bytes(name) / (1 << 20):.0f}{above}", found[name][0][0]["version"]]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pictures", type=pathlib.Path, help="a folder of JPEGs")
    parser.add_argument("--samples", type=int, default=2000, help="pictures of the dataset")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each loader")
    parser.add_argument("--part-mib", type=int, default=16, help="size of a part")
    parser.add_argument("--latency-ms", type=int, default=0, help="delay of each answer")
    parser.add_argument("--shuffle", action="store_true", help="each loader's own shuffled order")
    parser.add_argument("--server", help="the built server")
    parser.add_argument("--only", nargs="*", help="names of loaders")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="every row")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--options", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.pictures, json.loads(arguments.options))
    if arguments.samples < BATCH:
        parser.error(f"--samples must be at least {BATCH}")
    *cores, server_core = sorted(os.sched_getaffinity(0))
    cores = cores or [server_core]
    part_bytes = arguments.part_mib << 20
    options = {"cores": cores, "cache_bytes": CACHED_PARTS * part_bytes}
    options["shuffle"] = arguments.shuffle
    program = arguments.server or server_program()
    found, missing, load = {}, {}, os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="stores-") as temporary:
        folder = pathlib.Path(temporary)
        samples = link(arguments.pictures, folder, arguments.samples)
        expected = (len(samples), sum(label for _, label in samples))
        with contextlib.redirect_stdout(sys.stderr):
            missing = write_all(samples, folder, part_bytes)
        written = [name for name in ("meetpoint", "mds", "litdata", "webdataset")
                   if name not in missing]  # fmt: skip
        server = Server(program, folder / "store", arguments.latency_ms, server_core)
        sizes = server.upload(folder, written)
        for name in written:
            shutil.rmtree(folder / name)
        names = [name for name in MAKERS if name.split(",")[0] in written]
        names = [name for name in names if not arguments.only or name in arguments.only]
        for turn in range(arguments.rounds):
            for name in names:
                if name in missing:
                    continue
                rows, reason = measure(name, server, options, expected)
                if reason:
                    missing[name] = reason
                    found.pop(name, None)
                    print(f"{name}: {reason}", file=sys.stderr)
                    continue
                found.setdefault(name, []).append(rows)
                rates = ", ".join(f"{row['samples_per_second']:.0f}" for row in rows)
                print(f"round {turn}: {name}: {rates} samples/s", file=sys.stderr)
        server.close()
    lines = table(found, sizes, options["cache_bytes"]) if found else []
    lines += ["", *(f"Not measured: {name}: {why}" for name, why in missing.items())]
    lines += [
        f"{len(samples)} photographs, {sizes['meetpoint'] / (1 << 20):.0f} MiB as a dataset of "
        f"Meetpoint, parts of {arguments.part_mib} MiB (MDS: half), a cache of "
        f"{options['cache_bytes'] >> 20} MiB; {'shuffled' if arguments.shuffle else 'sequential'}; "
        f"medians of {arguments.rounds} rounds; {len(cores)} core(s) and worker(s) for the loader, "
        f"one core for the server, {arguments.latency_ms} ms before each answer; Python "
        f"{platform.python_version()}; load average before the run {load:.1f}.",
    ]
    print("\n".join(lines))
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": found, "missing": missing}, indent=1) + "\n")


if __name__ == "__main__":
    main()
