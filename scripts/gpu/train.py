#!/usr/bin/env python3
"""Trains ResNet-50 from JPEGs on a GPU and measures how long the GPU waits for data.

    python scripts/gpu/train.py PHOTOS [--workers 8] [--steps 60] [--batch 256] [--repeat 4]
                                       [--dtype bfloat16] [--gpu-decode]

PHOTOS is a folder of JPEG files, each of which is one class; they are packed into a temporary
folder several times. bfloat16, channels-last, 224x224. Steps are measured with the loader and
with one batch that stays on the GPU; the difference is the time that the GPU waits for data, which
the loader measures too. All steps with the loader are of one epoch, in which each file occurs
several times, and the first ones, which use batches prepared ahead, are not measured. Prints one
JSON object. Needs torch and torchvision with CUDA, and the package `meetpoint` with CUDA.
"""

import argparse
import json
import os
import pathlib
import tempfile
import time

import torch
import torchvision

import meetpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=pathlib.Path, help="folder of JPEG files")
    parser.add_argument("--workers", type=int, default=8, help="threads that prepare batches")
    parser.add_argument("--steps", type=int, default=60, help="steps of each measurement")
    parser.add_argument("--batch", type=int, default=256, help="images in a batch")
    parser.add_argument("--copies", type=int, default=64, help="copies of each file in the dataset")
    parser.add_argument("--repeat", type=int, help="times of a file in an epoch; default: enough")
    parser.add_argument("--warm-up", type=int, default=40, help="steps before the measured ones")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--gpu-decode", action="store_true", help="decode on the GPU as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, packed(pathlib.Path(folder), options))


def packed(folder: pathlib.Path, options: argparse.Namespace) -> str:
    """The files, each in a separate folder, as a dataset."""
    for number, file in enumerate(sorted(options.photos.iterdir())):
        to = folder / "photos" / f"{number:04}"
        to.mkdir(parents=True)
        first = to / "0.jpg"
        first.write_bytes(file.read_bytes())
        for copy in range(1, options.copies):
            os.link(first, to / f"{copy}.jpg")
    return meetpoint.pack(folder / "photos", folder / "photos.set").destination


def measure(options: argparse.Namespace, dataset: str) -> None:
    more = {"gpu_decode": "cuda:0"} if options.gpu_decode else {}
    if options.dtype == "bfloat16":
        more["device_dtype"] = "bfloat16"
    files = options.copies * sum(1 for _ in options.photos.iterdir())
    wanted = (1 + options.warm_up + options.steps) * options.batch
    repeat = options.repeat or -(-wanted // files)
    if repeat * files < wanted:
        raise SystemExit(f"an epoch has {repeat * files} images, {wanted} are needed: raise --repeat")
    loader = meetpoint.Loader(
        dataset,
        recipe="imagenet-resnet@1",
        batch_size=options.batch,
        workers=options.workers,
        drop_last=True,
        sampler=meetpoint.samplers.Repeated(repeat, repeat * files),
        output="torch",
        device_out="cuda:0",
        **more,
    )
    torch.backends.cudnn.benchmark = True
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss()

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        images = images.to(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    source = iter(loader)
    images, labels = next(source)
    for _ in range(10):
        step(images, labels)
    alone = timed(lambda: step(images, labels), options.steps)

    def loaded() -> None:
        images, labels = next(source)
        step(images, labels)

    for _ in range(options.warm_up):
        loaded()
    with_loader = timed(loaded, options.steps)
    # The epoch ends here, so that it is in the report.
    del source
    delivery = loader.report()["epochs"][-1]["delivery"]
    print(
        json.dumps(
            {
                "gpu": torch.cuda.get_device_name(0),
                "workers": options.workers,
                "gpu_decode": options.gpu_decode,
                "batch": options.batch,
                "dtype": str(images.dtype),
                "step_alone_s": alone,
                "step_with_loader_s": with_loader,
                "idle_share": max(0.0, 1 - alone / with_loader),
                "images_per_second": options.batch / with_loader,
                "epoch": {
                    "batches": delivery["batches"],
                    "late_batches": delivery["late_batches"],
                    "gpu_idle_s": delivery["gpu_idle_ns"] / 1e9,
                    "gpu_idle_batches": delivery["gpu_idle_measured"],
                    "direct_share": delivery["direct_bytes"] / delivery["bytes"],
                    "staged": delivery["staged"],
                },
            }
        )
    )


def timed(work, steps: int) -> float:
    """Seconds per step."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - started) / steps


if __name__ == "__main__":
    main()
