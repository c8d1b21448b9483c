#!/usr/bin/env python3
"""Trains ResNet-50 from JPEGs on a GPU and measures how long the GPU waits for data.

    python scripts/gpu/train.py DATASET [--workers 8] [--steps 120] [--batch 256] [--gpu-decode]

bfloat16 autocast, channels-last, 224x224. Each step is measured with the loader and with one batch
that stays on the GPU; the difference is the time that the GPU waits for data. Prints one JSON
object. Needs torch and torchvision with CUDA, and the package `meetpoint` with CUDA.
"""

import argparse
import json
import time

import torch
import torchvision

import meetpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", help="a packed dataset of JPEGs with labels")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--gpu-decode", action="store_true", help="decode on the GPU as well")
    options = parser.parse_args()
    more = {"gpu_decode": "cuda:0"} if options.gpu_decode else {}
    loader = meetpoint.Loader(
        options.dataset,
        recipe="imagenet-train",
        batch_size=options.batch,
        workers=options.workers,
        drop_last=True,
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

    def batches():
        while True:
            yield from loader

    source = batches()
    images, labels = next(source)
    labels = labels.clamp(min=0)
    for _ in range(10):
        step(images, labels)
    alone = timed(lambda: step(images, labels), options.steps)

    def loaded() -> None:
        images, labels = next(source)
        step(images, labels.clamp(min=0))

    for _ in range(10):
        loaded()
    with_loader = timed(loaded, options.steps)
    print(
        json.dumps(
            {
                "gpu": torch.cuda.get_device_name(0),
                "workers": options.workers,
                "gpu_decode": options.gpu_decode,
                "batch": options.batch,
                "step_alone_s": alone,
                "step_with_loader_s": with_loader,
                "idle_share": max(0.0, 1 - alone / with_loader),
                "images_per_second": options.batch / with_loader,
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
