#!/usr/bin/env python3
"""Measures training from an object store beside MDS, LitData and WebDataset.

    cargo build --release -p meetpoint-cli --features remote
    pip install moto[server]==5.2.5 boto3 mosaicml-streaming==0.13.0 litdata==0.2.76 \
        webdataset==1.0.2 pillow numpy torch
    pip install meetpoint-*.whl            # built with --features remote
    python stores.py --photos FOLDER [--side 224] [--epochs 2] [--rounds 5] [--json FILE]

All read the same JPEG files from the same S3 server on this machine (moto), sequentially, with one
process, two threads or workers, and a cache of two parts (two shards). Each decodes, resizes and
collects batches of 64. Every round starts with an empty cache, and the loaders take turns. It
prints the median of samples/s of each epoch, the bytes that the server sent per epoch divided by
those of the files, and the ratio of ours to the best of the others. A peer that is not installed is left out.
"""

import argparse
import http.client
import http.server
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BATCH, WORKERS, PART_BYTES = 64, 2, 16 << 20
BUCKET = "bench"


class Counter(http.server.ThreadingHTTPServer):
    """Passes requests on to the S3 server, and counts the bytes of the answers."""

    daemon_threads = True

    def __init__(self, behind):
        self.sent, self.lock = 0, threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(handler):
                length = int(handler.headers.get("Content-Length") or 0)
                body = handler.rfile.read(length) if length else None
                upstream = http.client.HTTPConnection("127.0.0.1", behind)
                upstream.request(handler.command, handler.path, body, dict(handler.headers))
                answer = upstream.getresponse()
                content = answer.read()
                handler.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        handler.send_header(name, value)
                sent = answer.getheader("Content-Length") if handler.command == "HEAD" else None
                handler.send_header("Content-Length", sent or str(len(content)))
                handler.end_headers()
                handler.wfile.write(content)
                with self.lock:
                    self.sent += len(content)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = do

            def log_message(handler, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self):
        with self.lock:
            sent, self.sent = self.sent, 0
        return sent


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def decode(data, side):
    import io

    import numpy as np
    from PIL import Image

    image = Image.open(io.BytesIO(data)).convert("RGB").resize((side, side))
    return np.asarray(image)


class Meetpoint:
    name = "meetpoint"

    def write(self, photos, folder):
        import meetpoint

        meetpoint.pack(photos, folder / "set", part_size=PART_BYTES)

    def epochs(self, url, cache, side):
        import meetpoint
        import meetpoint.transforms as T

        recipe = T.Compose([T.Resize((side, side)), T.ToImage()])
        options = dict(cache_dir=str(cache), cache_size=2 * PART_BYTES, workers=WORKERS)
        with meetpoint.Loader(f"{url}/set", recipe=recipe, batch_size=BATCH, **options) as loader:
            while True:
                yield sum(len(batch[0]) for batch in loader)


class Mds:
    name = "MDS"

    def write(self, photos, folder):
        from streaming import MDSWriter

        columns = {"image": "bytes"}
        with MDSWriter(out=str(folder / "mds"), columns=columns, size_limit=PART_BYTES) as out:
            for path in sorted(photos.rglob("*.jpg")):
                out.write({"image": path.read_bytes()})

    def epochs(self, url, cache, side):
        from streaming import StreamingDataset
        from torch.utils.data import DataLoader

        class Decoded(StreamingDataset):
            def __getitem__(self, index):
                return decode(super().__getitem__(index)["image"], side).copy()

        dataset = Decoded(
            remote=f"{url}/mds",
            local=str(cache),
            cache_limit=2 * PART_BYTES * WORKERS,
            batch_size=BATCH,
        )
        loader = DataLoader(dataset, batch_size=BATCH, num_workers=WORKERS)
        while True:
            yield sum(len(batch) for batch in loader)


class LitData:
    name = "LitData"

    def write(self, photos, folder):
        from litdata import optimize

        paths = [str(path) for path in sorted(photos.rglob("*.jpg"))]
        optimize(read_bytes, paths, str(folder / "lit"), chunk_bytes=PART_BYTES, num_workers=1)

    def epochs(self, url, cache, side):
        from litdata import StreamingDataLoader, StreamingDataset

        endpoint = {"endpoint_url": os.environ["AWS_ENDPOINT_URL"]}
        dataset = StreamingDataset(
            f"{url}/lit",
            cache_dir=str(cache),
            max_cache_size=2 * PART_BYTES * WORKERS,
            storage_options=endpoint,
            transform=lambda data: decode(data, side).copy(),
        )
        loader = StreamingDataLoader(dataset, batch_size=BATCH, num_workers=WORKERS)
        while True:
            yield sum(len(batch) for batch in loader)


class WebDataset:
    name = "WebDataset"

    def write(self, photos, folder):
        import webdataset

        (folder / "wds").mkdir()
        pattern = str(folder / "wds" / "%06d.tar")
        with webdataset.ShardWriter(pattern, maxsize=PART_BYTES) as out:
            for number, path in enumerate(sorted(photos.rglob("*.jpg"))):
                out.write({"__key__": f"{number:08d}", "jpg": path.read_bytes()})
        self.shards = len(list((folder / "wds").iterdir()))

    def epochs(self, url, cache, side):
        import webdataset
        from torch.utils.data import DataLoader

        base = f"{os.environ['AWS_ENDPOINT_URL']}/{BUCKET}/wds"
        urls = [f"pipe:curl -s {base}/{shard:06d}.tar" for shard in range(self.shards)]
        dataset = webdataset.WebDataset(urls, shardshuffle=False).map(
            lambda sample: decode(sample["jpg"], side).copy()
        )
        loader = DataLoader(dataset, batch_size=BATCH, num_workers=WORKERS)
        while True:
            yield sum(len(batch) for batch in loader)


def read_bytes(path):
    return pathlib.Path(path).read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=pathlib.Path, required=True)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="stores-"))
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        counter = Counter(port)
        endpoint = f"http://127.0.0.1:{counter.server_address[1]}"
        os.environ.update(
            AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench", AWS_REGION="us-east-1",
            AWS_DEFAULT_REGION="us-east-1", AWS_ENDPOINT_URL=endpoint, S3_ENDPOINT_URL=endpoint,
        )
        measure(given, work, counter)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(work, ignore_errors=True)


def measure(given, work, counter):
    import boto3

    client = boto3.client("s3")
    for _ in range(100):
        try:
            client.create_bucket(Bucket=BUCKET)
            break
        except Exception:  # The server is starting.
            time.sleep(0.1)
    source = sum(path.stat().st_size for path in given.photos.rglob("*.jpg"))
    loaders = []
    for loader in (Meetpoint(), Mds(), LitData(), WebDataset()):
        try:
            loader.write(given.photos, work)
        except ImportError as error:
            print(f"{loader.name}: left out, {error}")
            continue
        loaders.append(loader)
    for path in sorted(path for path in work.rglob("*") if path.is_file()):
        client.upload_file(str(path), BUCKET, str(path.relative_to(work)))
    speeds = {loader.name: [[] for _ in range(given.epochs)] for loader in loaders}
    shares = {loader.name: [[] for _ in range(given.epochs)] for loader in loaders}
    for number in range(given.rounds):
        for loader in loaders:
            cache = work / f"cache-{loader.name}-{number}"
            cache.mkdir()
            counter.take()
            epochs = loader.epochs(f"s3://{BUCKET}", cache, given.side)
            for epoch in range(given.epochs):
                began = time.perf_counter()
                samples = next(epochs)
                speeds[loader.name][epoch].append(samples / (time.perf_counter() - began))
                shares[loader.name][epoch].append(counter.take() / source)
            epochs.close()
            shutil.rmtree(cache, ignore_errors=True)
    results = {}
    for loader in loaders:
        results[loader.name] = {
            "samples_per_second": [statistics.median(each) for each in speeds[loader.name]],
            "fetched_share": [statistics.median(each) for each in shares[loader.name]],
        }
        print(loader.name, json.dumps(results[loader.name]))
    others = [results[it.name]["samples_per_second"] for it in loaders if it.name != "meetpoint"]
    if others and "meetpoint" in results:
        ours = results["meetpoint"]["samples_per_second"]
        ratios = [own / max(each) for own, each in zip(ours, zip(*others))]
        results["ratio_to_the_best"] = ratios
        print("ratio to the best peer, by epoch:", ", ".join(f"{ratio:.2f}" for ratio in ratios))
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
