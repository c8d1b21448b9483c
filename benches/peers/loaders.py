#!/usr/bin/env python3
"""Measures whole loaders: the same photographs and recipe, one after the other, in one run.

    python loaders.py DIR [--rounds 3] [--repeat 3] [--only NAME ...] [--python dali=PYTHON ...]
                          [--markdown FILE]

The recipe is a random resized crop to 224, a flip, float32 normalised, channels first, in batches
of 50 with labels. Each loader is a separate process on the cores of this one; its libraries use
one thread in addition to the workers in its name. Rates are over whole epochs after the first;
`per core-second` divides by the CPU time of the process and all of its children. A missing
peer is named with the reason. DIR holds JPEGs; they are linked `--repeat` times to make epochs
longer. `--python` gives a peer a separate interpreter. For meaningful figures, the machine must
be idle.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

BATCH, SIDE = 50, 224
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
CLASSES = 4


# Loaders: each takes the folder of what was prepared and gives a function that begins an epoch.


def torch_loader(workers, tensor=False):
    import torch
    import torchvision
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = [v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage()]
    steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    transform = v2.Compose(steps)

    def decode(path):
        return torchvision.io.decode_image(path, mode=torchvision.io.ImageReadMode.RGB)

    def make(folder):
        more = {"loader": decode} if tensor else {}
        data = torchvision.datasets.ImageFolder(folder / "pictures", transform, **more)
        loader = torch.utils.data.DataLoader(
            data, BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )
        return lambda: iter(loader)

    return make, f"torch {torch.__version__}, torchvision {torchvision.__version__}"


def webdataset():
    import torch
    import webdataset as wds
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = [v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage()]
    steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    transform = v2.Compose(steps)

    def make(folder):
        shards = sorted(str(path) for path in (folder / "shards").glob("*.tar"))
        data = wds.WebDataset(shards, shardshuffle=False).shuffle(200).decode("pil")
        data = data.to_tuple("jpg", "cls").map_tuple(transform, lambda label: label)
        return lambda: iter(data.batched(BATCH))

    return make, f"webdataset {wds.__version__}, in this process"


def box(chance, width, height):
    """A random region, as RandomResizedCrop draws it."""
    for _ in range(10):
        area = width * height * chance.uniform(0.08, 1.0)
        ratio = (3 / 4) ** chance.uniform(-1, 1)
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return chance.randint(0, width - w), chance.randint(0, height - h), w, h
    return 0, 0, width, height


def opencv(simple):
    """A plain loop in one thread; resizing there is not antialiased."""
    import random

    import cv2
    import numpy as np

    cv2.setNumThreads(1)
    chance = random.Random(1)
    version = f"OpenCV {cv2.__version__}"
    if simple:
        import simplejpeg

        version = f"simplejpeg {simplejpeg.__version__}, {version}"

    def pixels(data):
        if simple:
            return simplejpeg.decode_jpeg(data)
        flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION
        return cv2.imdecode(np.frombuffer(data, np.uint8), flags)

    shift = np.array([255.0 * it for it in MEAN], np.float32)
    factor = np.array([1 / (255.0 * it) for it in STD], np.float32)

    def load(path, into):
        with open(path, "rb") as file:
            image = pixels(file.read())
        x, y, w, h = box(chance, image.shape[1], image.shape[0])
        image = cv2.resize(image[y : y + h, x : x + w], (SIDE, SIDE))
        image = cv2.flip(image, 1) if chance.random() < 0.5 else image
        for channel, plane in enumerate(cv2.split(image)):
            np.subtract(plane, shift[channel], out=into[channel])
            into[channel] *= factor[channel]

    def make(folder):
        files = listed(folder)

        def epoch():
            chance.shuffle(files)
            for at in range(0, len(files), BATCH):
                batch = np.empty((BATCH, 3, SIDE, SIDE), np.float32)
                for (path, _), into in zip(files[at : at + BATCH], batch):
                    load(path, into)
                yield batch, np.array([label for _, label in files[at : at + BATCH]])

        return epoch

    return make, f"{version}, a plain loop in one thread, resize without antialiasing"


def grain():
    import random

    import grain as library
    import numpy as np
    from PIL import Image

    chance = random.Random(1)

    scale = np.array([255.0 * it for it in STD], np.float32)
    shift = np.array([255.0 * it for it in MEAN], np.float32)

    def load(entry):
        path, label = entry
        with Image.open(path) as file:
            picture = file.convert("RGB")
        x, y, w, h = box(chance, *picture.size)
        picture = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, (x, y, x + w, y + h))
        if chance.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = (np.asarray(picture, np.float32) - shift) / scale
        return np.ascontiguousarray(pixels.transpose(2, 0, 1)), label

    def make(folder):
        files = listed(folder)
        data = library.MapDataset.source(files).shuffle(seed=1).map(load).batch(BATCH)
        options = library.ReadOptions(num_threads=1, prefetch_buffer_size=100)
        return lambda: iter(data.to_iter_dataset(options))

    return make, f"grain {getattr(library, '__version__', '')}, Pillow, one thread"


def spdl():
    import importlib.metadata
    import random

    import numpy as np
    import spdl.io
    import spdl.pipeline

    chance = random.Random(1)
    scale = np.array([255.0 * it for it in STD], np.float32).reshape(1, 3, 1, 1)
    shift = np.array([255.0 * it for it in MEAN], np.float32).reshape(1, 3, 1, 1)

    def decode(entry):
        path, label = entry
        packets = spdl.io.demux_image(path)
        width, height = packets.width, packets.height
        area = chance.uniform(0.08, 1.0)
        w, h = max(1, int(width * area**0.5)), max(1, int(height * area**0.5))
        x, y = chance.randint(0, width - w), chance.randint(0, height - h)
        flip = ",hflip" if chance.random() < 0.5 else ""
        steps = f"crop={w}:{h}:{x}:{y},scale={SIDE}:{SIDE}:flags=bilinear{flip},format=rgb24"
        return spdl.io.decode_packets(packets, filter_desc=steps), label

    def collate(entries):
        frames, labels = zip(*entries)
        pixels = spdl.io.to_numpy(spdl.io.convert_frames(list(frames)))
        batch = (pixels.transpose(0, 3, 1, 2).astype(np.float32) - shift) / scale
        return batch, np.array(labels)

    def make(folder):
        files = listed(folder)
        # Without FFmpeg's libraries this says so; the pipeline would only be empty.
        decode(files[0])

        def epoch():
            chance.shuffle(files)
            builder = spdl.pipeline.PipelineBuilder().add_source(list(files))
            builder = builder.pipe(decode, concurrency=1).aggregate(BATCH).pipe(collate)
            pipeline = builder.add_sink(2).build(num_threads=1)
            with pipeline.auto_stop():
                yield from pipeline.get_iterator(timeout=300)

        return epoch

    return make, f"SPDL {importlib.metadata.version('spdl')}, one thread"


def dali():
    import nvidia.dali as library
    from nvidia.dali import fn, types

    @library.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
    def pipeline(root):
        files, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
        images = fn.decoders.image_random_crop(files, output_type=types.RGB)
        images = fn.resize(images, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR)
        images = fn.crop_mirror_normalize(
            images,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255.0 * it for it in MEAN],
            std=[255.0 * it for it in STD],
            mirror=fn.random.coin_flip(),
        )
        return images, labels

    def make(folder):
        built = pipeline(str(folder / "pictures"))
        built.build()
        batches = len(listed(folder)) // BATCH

        def epoch():
            for _ in range(batches):
                images, labels = built.run()
                yield images.as_array(), labels.as_array()

        return epoch

    return make, f"DALI {library.__version__} on the CPU, one thread"


def ffcv():
    import ffcv as library

    raise ImportError(f"ffcv {library} is there, and nobody has written how to measure it")


def meetpoint(form="none", fast=False):
    import meetpoint as library
    from meetpoint import transforms as T

    decode = [T.Decode(scaled=True)] if fast else []
    recipe = T.Compose(
        [
            *decode,
            T.RandomResizedCrop(SIDE),
            T.RandomHorizontalFlip(),
            T.ToImage(),
            T.ToDtype("float32", scale=True),
            T.Normalize(MEAN, STD),
        ]
    )

    def make(folder):
        loader = library.Loader(
            folder / f"{form}.set", recipe=recipe, batch_size=BATCH, shuffle=True, workers=1
        )
        return lambda: iter(loader)

    way = "fast, less exact decoding" if fast else "Pillow's pixels bit for bit"
    return make, f"meetpoint {library.__version__}, one worker, {way}"


MAKERS = {
    "meetpoint": meetpoint,
    "meetpoint, fast decode": lambda: meetpoint(fast=True),
    "meetpoint, form fast": lambda: meetpoint(form="fast"),
    "meetpoint, form fast, fast decode": lambda: meetpoint(form="fast", fast=True),
    "torch, 0 workers": lambda: torch_loader(0),
    "torch, 1 worker": lambda: torch_loader(1),
    "torch, 2 workers": lambda: torch_loader(2),
    "torch, 0 workers, tensors": lambda: torch_loader(0, tensor=True),
    "opencv": lambda: opencv(simple=False),
    "simplejpeg, opencv": lambda: opencv(simple=True),
    "webdataset": webdataset,
    "grain": grain,
    "spdl": spdl,
    "dali": dali,
    "ffcv": ffcv,
}


# CPU time and memory of a process and its children.


def tree():
    """This process and all below it."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def cpu_seconds():
    """Of this process and all below it, those that ended included."""
    ticks = 0
    for process in tree():
        try:
            fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(int(fields[at]) for at in (11, 12, 13, 14))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes():
    """Proportional shares of memory, so that what processes share counts once."""
    total = 0
    for process in tree():
        try:
            text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in text.splitlines() if line[:4] == "Pss:")
    return total


def listed(folder):
    """Paths and labels, as ImageFolder numbers them."""
    names = sorted(path.name for path in (folder / "pictures").iterdir())
    return [
        (str(path), label)
        for label, name in enumerate(names)
        for path in sorted((folder / "pictures" / name).iterdir())
    ]


def child(name, folder, rounds):
    """Measures one loader; prints JSON."""
    before_import = time.perf_counter()
    make, version = MAKERS[name]()
    imported = time.perf_counter()
    begin = make(folder)
    batches = begin()
    images, labels = next(batches)
    first = time.perf_counter()
    assert tuple(images.shape) == (BATCH, 3, SIDE, SIDE), images.shape
    assert str(images.dtype).endswith("float32") and len(labels) == BATCH
    for images, _ in batches:
        pass
    rates, per_core = [], []
    total, memory = 0.0, 0
    for _ in range(rounds):
        cpu, begun, count = cpu_seconds(), time.perf_counter(), 0
        for images, labels in begin():
            count += len(images)
            # So that it cannot be left out.
            total += float(images[0, 0, 0, 0])
            if count == 2 * BATCH:
                memory = max(memory, memory_bytes())
        rates.append(count / (time.perf_counter() - begun))
        per_core.append(count / max(cpu_seconds() - cpu, 1e-9))
    row = {
        "loader": name,
        "version": version,
        "images_per_second": statistics.median(rates),
        "images_per_core_second": statistics.median(per_core),
        "import_s": imported - before_import,
        "first_batch_s": first - imported,
        "memory_mib": memory / (1 << 20),
        "checked": total,
    }
    print(json.dumps(row), flush=True)
    # Some libraries' threads are in no hurry.
    os._exit(0)


def small_things(folder):
    """What reaching into a dataset costs, and handing a ready batch to Python; prints JSON."""
    import meetpoint as library
    from meetpoint import transforms as T

    def read(dataset):
        count = len(dataset)
        begun = time.perf_counter()
        size = sum(len(dataset[at].image) for at in range(count))
        return (time.perf_counter() - begun) / count * 1e6, size / count

    def best(mapped):
        dataset = library.open(folder / "none.set", mapped=mapped)
        return min(read(dataset) for _ in range(8))

    def pread(path, size):
        """The operating system's own time for a range of the same length, unchecked."""
        part = os.open(sorted(path.glob("part-*"))[0], os.O_RDONLY)
        times, size = [], int(size)
        ranges = range(0, os.fstat(part).st_size - size, size)
        for _ in range(8):
            begun = time.perf_counter()
            for at in ranges:
                os.pread(part, size, at)
            times.append((time.perf_counter() - begun) / len(ranges) * 1e6)
        os.close(part)
        return min(times)

    (plain, size), (mapped, _) = best(False), best(True)
    recipe = T.Compose([T.RandomResizedCrop(SIDE), T.ToTensor()])
    with library.Loader(
        folder / "none.set", recipe=recipe, batch_size=BATCH, workers=1, prefetch=8
    ) as loader:
        handed = []
        for _ in range(3):
            batches = iter(loader)
            next(batches)
            # Until eight are ready.
            time.sleep(8 * BATCH / 100)
            for _ in range(3):
                begun = time.perf_counter()
                if next(batches, None) is None:
                    sys.exit("too few pictures: give more, or --repeat")
                handed.append((time.perf_counter() - begun) / BATCH * 1e6)
    row = {
        "raw_us_per_sample": plain,
        "raw_mapped_us_per_sample": mapped,
        "pread_us_per_sample": pread(folder / "none.set", size),
        "raw_bytes": size,
        "ready_batch_us_per_image": statistics.median(handed),
    }
    print(json.dumps(row), flush=True)


def prepare(pictures, folder, repeat):
    """Links the pictures into classes, writes shards, packs."""
    import tarfile

    import meetpoint as library

    files = sorted(path for path in pictures.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    files = [path for path in files if path.is_file()]
    if not files:
        sys.exit(f"{pictures} holds no JPEG")
    count = len(files) * repeat // BATCH * BATCH
    (folder / "shards").mkdir()
    with tarfile.open(folder / "shards" / "0.tar", "w") as tar:
        for number in range(count):
            path, label = files[number % len(files)], number % CLASSES
            named = folder / "pictures" / f"class{label}" / f"{number:06}.jpg"
            named.parent.mkdir(parents=True, exist_ok=True)
            named.symlink_to(path.resolve())
            tar.add(path.resolve(), f"{number:06}.jpg")
            (folder / "label").write_text(str(label))
            tar.add(folder / "label", f"{number:06}.cls")
    library.pack(folder / "pictures", folder / "none.set", follow_links=True)
    command = [sys.executable, "-m", "meetpoint", "pack", str(folder / "pictures")]
    command += [str(folder / "fast.set"), "--form", "fast", "--follow-links", "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return count


def table(rows, missing):
    """A table in Markdown."""
    head = ["loader", "images/s", "images per core-second", "of the best peer", "first batch, s",
            "import, s", "memory, MiB", "what"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    peers = [it["images_per_core_second"] for it in rows if not it["loader"].startswith("meet")]
    best = max(peers, default=float("nan"))
    for row in rows:
        core = row["images_per_core_second"]
        cells = [row["loader"], f"{row['images_per_second']:.0f}", f"{core:.0f}"]
        cells += [f"{core / best:.2f}", f"{row['first_batch_s']:.2f}", f"{row['import_s']:.2f}"]
        cells += [f"{row['memory_mib']:.0f}", row["version"]]
        lines.append("| " + " | ".join(cells) + " |")
    if missing:
        lines += ["", *(f"Not measured: {name}: {why}" for name, why in missing)]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pictures", type=pathlib.Path, help="a folder of JPEGs")
    parser.add_argument("--rounds", type=int, default=3, help="epochs that are measured")
    parser.add_argument("--repeat", type=int, default=3, help="times that each picture is there")
    parser.add_argument("--only", nargs="*", help="names of loaders")
    parser.add_argument("--python", action="append", default=[], help="NAME=INTERPRETER")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child == "small":
        small_things(arguments.pictures)
        return
    if arguments.child:
        child(arguments.child, arguments.pictures, arguments.rounds)
    pythons = dict(it.split("=", 1) for it in arguments.python)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    rows, missing = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        count = prepare(arguments.pictures, folder, arguments.repeat)
        load = os.getloadavg()[0]
        for name in MAKERS:
            if arguments.only and name not in arguments.only:
                continue
            python = pythons.get(name, sys.executable)
            command = [python, __file__, str(folder), "--child", name]
            command += ["--rounds", str(arguments.rounds)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                silent = f"it ended with {done.returncode} and said nothing"
                missing.append((name, (done.stderr.strip().splitlines() or [silent])[-1][:300]))
                print(f"{name}: {missing[-1][1]}", file=sys.stderr)
                continue
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(json.dumps(rows[-1]), file=sys.stderr)
        command = [sys.executable, __file__, str(folder), "--child", "small"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        small = json.loads(done.stdout.splitlines()[-1])
    lines = table(rows, missing)
    lines += [
        "",
        f"{count} photographs an epoch, {arguments.rounds} epochs after the first, medians; "
        f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}; load average "
        f"before the run {load:.1f}.",
        f"Raw bytes to Python, checked: {small['raw_us_per_sample']:.1f} µs a sample of "
        f"{small['raw_bytes'] / 1024:.0f} KiB, {small['raw_mapped_us_per_sample']:.1f} µs mapped; "
        f"`os.pread` of as many: {small['pread_us_per_sample']:.1f} µs. Handing a ready batch to Python: "
        f"{small['ready_batch_us_per_image']:.2f} µs an image.",
    ]
    print("\n".join(lines))
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
