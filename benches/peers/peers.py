#!/usr/bin/env python3
"""Measures what others need for the recipe decode, random resized crop 224, flip, to uint8.

    benches/peers/run.sh DIR [--rounds 5] [--pictures 200] [--torch] [--dali]

The same files, crops and flips as `cargo bench --bench jpeg`, which runs in turns with the peers,
each a process on one core that is timed by its own CPU time. A ratio is the peer's time over ours;
what differs from Pillow is the mean absolute difference of the outputs. A peer that cannot be
installed or used is named with the reason.
"""

import argparse
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SIDE = 224
# Outputs that are compared with Pillow's.
CHECKED = 32
# Name, packages, and whether it must be asked for, being large.
PEERS = {
    "pillow": (["pillow==13.0.0"], None),
    "opencv": (["opencv-python-headless"], None),
    "simplejpeg+opencv": (["simplejpeg", "opencv-python-headless"], None),
    "torchvision": (["torch", "torchvision"], "torch"),
    "dali": (["nvidia-dali-cuda120"], "dali"),
}


# The peers: each takes the bytes of a file, a crop and whether to flip, and gives an array.


def pillow():
    import numpy as np
    import PIL
    from PIL import Image

    def sample(data, x, y, width, height, flip):
        image = Image.open(io.BytesIO(data)).convert("RGB").crop((x, y, x + width, y + height))
        image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        if flip:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return np.asarray(image)

    return sample, f"Pillow {PIL.__version__}"


def opencv():
    import cv2
    import numpy as np

    cv2.setNumThreads(1)
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION

    def sample(data, x, y, width, height, flip):
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
        image = cv2.resize(image[y : y + height, x : x + width], (SIDE, SIDE))
        image = cv2.flip(image, 1) if flip else image
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)

    return sample, f"OpenCV {cv2.__version__}, resize without antialiasing"


def simplejpeg_opencv():
    import cv2
    import simplejpeg

    cv2.setNumThreads(1)

    def sample(data, x, y, width, height, flip):
        image = simplejpeg.decode_jpeg(data)
        image = cv2.resize(image[y : y + height, x : x + width], (SIDE, SIDE))
        return cv2.flip(image, 1) if flip else image

    return sample, f"simplejpeg {simplejpeg.__version__}, resize of OpenCV {cv2.__version__}"


def torchvision():
    import torch
    import torchvision
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)

    def sample(data, x, y, width, height, flip):
        file = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        image = decode_jpeg(file, mode=ImageReadMode.RGB)
        image = functional.resized_crop(image, y, x, height, width, [SIDE, SIDE], antialias=True)
        image = functional.horizontal_flip(image) if flip else image
        return image.permute(1, 2, 0).contiguous().numpy()

    return sample, f"torchvision {torchvision.__version__}"


def dali():
    """Decodes a region, as DALI's users do; a batch is one picture, so that turns stay short."""
    import numpy as np
    import nvidia.dali as dali
    from nvidia.dali import fn, types

    now = {}

    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline():
        def source(name):
            return lambda: [now[name]]

        file = fn.external_source(source=source("file"), dtype=types.UINT8, ndim=1)
        start = fn.external_source(source=source("start"), dtype=types.INT32, ndim=1)
        shape = fn.external_source(source=source("shape"), dtype=types.INT32, ndim=1)
        flip = fn.external_source(source=source("flip"), dtype=types.INT32, ndim=0)
        image = fn.decoders.image_slice(file, start, shape, axes=[0, 1], output_type=types.RGB)
        image = fn.resize(image, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=True)
        return fn.flip(image, horizontal=flip)

    built = pipeline(exec_async=False, exec_pipelined=False)
    built.build()

    def sample(data, x, y, width, height, flip):
        now["file"] = np.frombuffer(data, np.uint8)
        now["start"] = np.array([y, x], np.int32)
        now["shape"] = np.array([height, width], np.int32)
        now["flip"] = np.array(int(flip), np.int32)
        return np.array(built.run()[0].at(0))

    return sample, f"DALI {dali.__version__} on the CPU"


MAKERS = {
    "pillow": pillow,
    "opencv": opencv,
    "simplejpeg+opencv": simplejpeg_opencv,
    "torchvision": torchvision,
    "dali": dali,
}


def child(name, boxes, outputs):
    """Measures one peer once; prints JSON, writes its first outputs."""
    import numpy as np

    sample, version = MAKERS[name]()
    files = [(pathlib.Path(entry["file"]).read_bytes(), entry["draws"][0]) for entry in boxes]
    results = []
    for data, draw in files[:CHECKED]:
        results.append(np.array(sample(data, *draw)))
    np.save(outputs, np.stack(results))
    before = time.process_time()
    for data, draw in files:
        sample(data, *draw)
    us = (time.process_time() - before) * 1e6 / len(files)
    print(json.dumps({"us": us, "version": version}))


def installed(name, options):
    """None, or why the peer cannot be measured."""
    packages, asked = PEERS[name]
    if asked and not getattr(options, asked):
        return f"large; asked for by --{asked}"
    # Torch's own index has builds without CUDA, a tenth of the size.
    index = ["--index-url", "https://download.pytorch.org/whl/cpu"] if asked == "torch" else []
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for extra in (index, []) if index else ([],):
        run = subprocess.run([*pip, *extra, *packages], capture_output=True, text=True)
        if run.returncode == 0:
            return None
    lines = run.stderr.strip().splitlines() or ["pip failed"]
    return lines[-1]


def bench_program(root):
    """The built bench, with libjpeg-turbo where it builds."""
    command = ["cargo", "bench", "-p", "meetpoint-jpeg-benches", "--bench", "jpeg", "--no-run"]
    command += ["--message-format=json"]
    for features in (["--features", "libjpeg-turbo"], []):
        run = subprocess.run([*command, *features], cwd=root, capture_output=True, text=True)
        if run.returncode == 0:
            messages = [json.loads(line) for line in run.stdout.splitlines()]
            # Programs of the package are built along with it, in any order.
            built = [m for m in messages if m.get("executable")]
            return next(m["executable"] for m in built if m["target"]["kind"] == ["bench"])
    sys.exit(f"the bench does not build:\n{run.stderr}")


def run_child(name, boxes, outputs):
    command = [sys.executable, __file__, "--child", name, boxes, outputs]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        return None, (run.stderr.strip().splitlines() or ["it failed"])[-1]
    return json.loads(run.stdout.strip().splitlines()[-1]), None


def main():
    import numpy as np

    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--dali", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the result")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    program = bench_program(root)
    left_out = {name: installed(name, options) for name in PEERS}
    left_out = {name: reason for name, reason in left_out.items() if reason}
    times, versions, outputs = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        boxes, rows, samples = (folder / name for name in ("boxes.json", "rows.json", "samples"))
        ours = [program, "--bench", "--dir", options.directory.resolve(), "--sweeps", "1"]
        ours += ["--pictures", str(options.pictures), "--json", rows, "--boxes", boxes]
        ours += ["--samples", samples, "--sets", "given"]
        for _ in range(options.rounds):
            subprocess.run(ours, check=True, stdout=subprocess.DEVNULL)
            for row in json.loads(rows.read_text())["rows"]:
                if row["unit"] == "us" and "sample: " in row["case"]:
                    name = row["case"].split("sample: ")[1]
                    times.setdefault(name, []).append(row["value"])
            for name in PEERS:
                if name in left_out:
                    continue
                path = folder / f"{name}.npy"
                result, reason = run_child(name, boxes, path)
                if reason:
                    left_out[name] = reason
                    continue
                times.setdefault(name, []).append(result["us"])
                versions[name] = result["version"]
                outputs[name] = np.load(path)
        shape = (-1, SIDE, SIDE, 3)
        outputs["ours"] = np.fromfile(samples, np.uint8).reshape(shape)[:CHECKED]
    medians = {name: statistics.median(values) for name, values in times.items()}
    report = {"directory": str(options.directory), "rounds": options.rounds, "rows": []}
    print(f"{'':34}{'us/image':>10}{'/ ours':>8}{'to Pillow':>11}")
    for name, us in sorted(medians.items(), key=lambda pair: pair[1]):
        difference = None
        if name in outputs and "pillow" in outputs:
            far = np.abs(outputs[name].astype(int) - outputs["pillow"].astype(int))
            difference = float(far.mean())
        row = {"name": name, "us": us, "ratio": us / medians["ours"], "to_pillow": difference}
        report["rows"].append(row | {"version": versions.get(name)})
        apart = "" if difference is None else f"{difference:.4f}"
        print(f"{name:34}{us:10.1f}{us / medians['ours']:8.2f}{apart:>11}  {versions.get(name, '')}")
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}")
    report["left_out"] = left_out
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if sys.argv[1:2] == ["--child"]:
    # One core, for libraries that start threads all the same.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    child(sys.argv[2], json.loads(pathlib.Path(sys.argv[3]).read_text()), sys.argv[4])
else:
    main()
