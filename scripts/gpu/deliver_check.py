#!/usr/bin/env python3
"""Checks batches that are delivered to a GPU, on a machine with one; needs torch with CUDA.

Compares them with the host's bit by bit, orders them with busy streams, watches the memory of the
GPU over many batches, and measures the transfer and the conversion next to plain copies of torch.
Prints a table; exits with 1 if something differs.

    python scripts/gpu/deliver_check.py [--device cuda:0] [--batches 200] [--quick]
"""

from __future__ import annotations

import argparse
import gc
import struct
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any, Callable, List, Tuple

import numpy
import torch

import meetpoint
from meetpoint import transforms as T

SIDE = 240
ROWS: List[Tuple[str, str, bool]] = []
SUMMED = ("bytes", "batches", "transfer_ns", "convert_ns", "late_batches", "direct_bytes")
SUMMED += ("gpu_idle_ns", "staging_wait_ns")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def row(name: str, value: str, passed: bool = True) -> None:
    ROWS.append((name, value, passed))
    print(f"{'ok  ' if passed else 'FAIL'} {name:<58} {value}", flush=True)


def png(pixels: numpy.ndarray) -> bytes:
    """A picture as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    image = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 0)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + image


def packed(folder: Path, count: int) -> str:
    pictures = folder / "pictures"
    noise = numpy.random.default_rng(1)
    for number in range(count):
        to = pictures / f"class{number % 7}"
        to.mkdir(parents=True, exist_ok=True)
        pixels = noise.integers(0, 256, (SIDE, SIDE, 3), numpy.uint8)
        (to / f"{number:05}.png").write_bytes(png(pixels))
    return meetpoint.pack(pictures, folder / "pictures.set").destination


def recipe(dtype: str, layout: str, size: Any, tail: List[Any] = []) -> List[Any]:
    operations: List[Any] = [T.RandomResizedCrop(size), T.RandomHorizontalFlip()]
    if dtype != "uint8":
        operations += [T.ToDtype(dtype, scale=True), T.Normalize(MEAN, STD)]
    return [*operations, T.Layout(layout), *tail]


def loader(dataset: str, operations: List[Any], **arguments: Any) -> Any:
    options = {"batch_size": 32, "shuffle": "sampler" not in arguments, "seed": 3, **arguments}
    options.setdefault("output", "torch")
    return meetpoint.Loader(dataset, recipe=operations, **options)


def same_bits(one: Any, other: Any) -> bool:
    one, other = one.contiguous().cpu(), other.contiguous().cpu()
    is_alike = one.shape == other.shape and one.dtype == other.dtype
    return is_alike and torch.equal(one.view(torch.uint8), other.view(torch.uint8))


def check_bits(dataset: str, device: str) -> None:
    cases = [
        (dtype, layout, size)
        for dtype in ("float32", "float16", "uint8")
        for layout in ("NCHW", "NHWC")
        for size in (224, (37, 51))
    ]
    for dtype, layout, size in cases:
        compare(f"bits: {dtype} {layout} {size}", dataset, device, recipe(dtype, layout, size))
    erasing = recipe("float32", "NCHW", 64, [T.RandomErasing(p=0.5)])
    compare("bits: float32, random_erasing on the host", dataset, device, erasing)
    for mix in (T.MixUp(num_classes=7), T.CutMix(num_classes=7)):
        name = type(mix).__name__
        for dtype in ("float32", "float16", "uint8"):
            operations = recipe(dtype, "NCHW", 64, [mix])
            compare(f"bits: {dtype}, {name} on the GPU", dataset, device, operations)
    grey = [T.Grayscale(), *recipe("float32", "NCHW", 63)[:2], T.ToDtype("float32", scale=True)]
    compare("bits: one channel", dataset, device, grey)


def check_bfloat16(dataset: str, device: str) -> None:
    cases = [
        (layout, size, tail)
        for layout in ("NCHW", "NHWC")
        for size in (224, (37, 51))
        for tail in ([], [T.MixUp(num_classes=7)])
    ]
    for layout, size, tail in cases:
        operations = recipe("float32", layout, size, tail)
        with loader(dataset, operations) as host, loader(
            dataset, operations, device_out=device, device_dtype="bfloat16"
        ) as gpu:
            passed, batches = True, 0
            for (wanted, _), (images, _) in zip(host, gpu):
                passed &= images.is_cuda and same_bits(images, wanted.to(torch.bfloat16))
                batches += 1
            passed &= batches == len(host)
        mixed = ", MixUp" if tail else ""
        row(f"bits: bfloat16 {layout} {size}{mixed}", f"{batches} batches", passed)


def compare(name: str, dataset: str, device: str, operations: List[Any]) -> None:
    with loader(dataset, operations) as host, loader(dataset, operations, device_out=device) as gpu:
        passed, batches = True, 0
        for (wanted, labels), (images, own) in zip(host, gpu):
            passed &= images.is_cuda and own.is_cuda and own.dtype == labels.dtype
            passed &= same_bits(images, wanted) and same_bits(own, labels)
            batches += 1
        passed &= batches == len(host)
    row(name, f"{batches} batches", passed)


def check_interfaces(dataset: str, device: str) -> None:
    operations = recipe("float32", "NCHW", 32)
    with loader(dataset, operations) as host, loader(
        dataset, operations, device_out=device, output="dlpack"
    ) as gpu:
        passed = True
        for (wanted, _), (images, _) in zip(host, gpu):
            passed &= images.__dlpack_device__() == (2, torch.device(device).index or 0)
            passed &= same_bits(torch.as_tensor(images, device=device), wanted)
            for stream in (None, 1, 2):
                capsule = images.__dlpack__(stream=stream)
                passed &= same_bits(torch.utils.dlpack.from_dlpack(capsule), wanted)
        try:
            images.__dlpack__(stream=0)
            passed = False
        except ValueError:
            pass
    row("__cuda_array_interface__, streams None, 1 and 2", "", passed)


def check_busy_streams(dataset: str, device: str, epochs: int) -> None:
    """Batches are dropped while work that reads them still waits on a busy stream."""
    operations = recipe("float32", "NCHW", 128)
    # 32 x 3 x 128 x 128 floats: two batches fit, so that memory is used again at once.
    limits = {"gpu_memory": "16MiB", "gpu_prefetch": 1}
    side = [torch.cuda.Stream(device), torch.cuda.Stream(device)]
    with loader(dataset, operations) as host, loader(
        dataset, operations, device_out=device, **limits
    ) as gpu:
        passed, batches = True, 0
        for _ in range(epochs):
            wanted, found = [images for images, _ in host], []
            for images, _ in gpu:
                stream = side[batches % 2]
                batches += 1
                with torch.cuda.stream(stream):
                    # It was exported to the default stream, whose order the side stream follows.
                    stream.wait_stream(torch.cuda.default_stream(device))
                    torch.cuda._sleep(20_000_000)
                    found.append(images.clone())
                torch.cuda.default_stream(device).wait_stream(stream)
                del images
            torch.cuda.synchronize(device)
            passed &= all(map(same_bits, found, wanted)) and len(found) == len(wanted)
    row("busy side streams, ordered by the default stream", f"{batches} batches", passed)
    with loader(dataset, operations) as host, loader(
        dataset, operations, device_out=device, **limits
    ) as gpu:
        wanted, found = [images for images, _ in host], []
        stream = side[0]
        with torch.cuda.stream(stream):
            # Here the side stream is the one of the export.
            for images, _ in gpu:
                torch.cuda._sleep(20_000_000)
                found.append(images.clone())
                del images
        torch.cuda.synchronize(device)
        passed = all(map(same_bits, found, wanted)) and len(found) == len(wanted)
    row("busy side stream, exported to it", f"{len(found)} batches", passed)


def check_memory(dataset: str, device: str, batches: int) -> None:
    operations = recipe("float32", "NCHW", 64)
    with loader(dataset, operations, device_out=device) as gpu:
        free: List[int] = []
        while len(free) < batches:
            for images, _ in gpu:
                images.sum()
                del images
                free.append(torch.cuda.mem_get_info(device)[0])
        torch.cuda.synchronize(device)
        steady = free[20:]
        delivery = gpu.report()["epochs"][-1]["delivery"]
    gc.collect()
    passed = max(steady) == min(steady)
    row(
        f"memory of the GPU over {len(free)} batches",
        f"changes by {max(steady) - min(steady)} bytes; at most "
        f"{delivery['device_bytes_max'] >> 20} MiB, {delivery['pinned_bytes'] >> 20} MiB pinned",
        passed,
    )


def timed(work: Callable[[], Any], times: int = 20) -> float:
    """Seconds of the GPU, the fastest of several."""
    best = float("inf")
    for _ in range(times):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) / 1e3)
    return best


def measure(dataset: str, device: str, quick: bool, batch: int) -> None:
    for dtype, size in (("float32", 4), ("bfloat16", 2), ("float16", 2), ("uint8", 1)):
        pixels = batch * 3 * 224 * 224
        moved = pixels * (1 + size)
        one = torch.empty(moved // 2, dtype=torch.uint8, device=device)
        other = torch.empty_like(one)
        copy = 2 * one.numel() / timed(lambda: other.copy_(one))
        pinned = torch.empty(pixels, dtype=torch.uint8, pin_memory=True)
        target = torch.empty(pixels, dtype=torch.uint8, device=device)
        bus = pixels / timed(lambda: target.copy_(pinned, non_blocking=True))
        for layout in ("NCHW", "NHWC"):
            # Long epochs: each begins with nothing prepared.
            more: Any = {"sampler": meetpoint.samplers.Repeated(8, 2048 if quick else 4096)}
            is_bfloat16 = dtype == "bfloat16"
            more.update({"device_dtype": dtype} if is_bfloat16 else {})
            operations = recipe("float32" if is_bfloat16 else dtype, layout, 224)
            with loader(dataset, operations, device_out=device, batch_size=batch, **more) as gpu:
                begun = time.perf_counter()
                count = 0
                for _ in range(2 if quick else 4):
                    for images, _ in gpu:
                        count += len(images)
                torch.cuda.synchronize(device)
                seconds = time.perf_counter() - begun
                epochs = [epoch["delivery"] for epoch in gpu.report()["epochs"]][1:]
            measured = sum(it["measured"] for it in epochs)
            total = {
                name: sum(it[name] for it in epochs)
                for name in SUMMED
            }
            staged = next((it["staged"] for it in epochs if it["staged"]), None)
            source = f"staged: {staged}" if staged else "from page-locked slots"
            per_batch = total["bytes"] / total["batches"]
            transfer = per_batch * measured / total["transfer_ns"]
            row(
                f"transfer: {dtype} {layout}, batches of {batch}",
                f"{transfer:.1f} GB/s; pinned copy by torch {bus / 1e9:.1f} GB/s; "
                f"{count / seconds:.0f} images/s, {total['late_batches']} late, {source}, "
                f"{total['direct_bytes'] / total['bytes']:.1%} direct, stream without work "
                f"{total['gpu_idle_ns'] / 1e6:.1f} ms, host waited for copies "
                f"{total['staging_wait_ns'] / 1e6:.1f} ms",
            )
            if dtype != "uint8":
                convert = moved * measured / total["convert_ns"]
                share = convert * 1e9 / copy
                row(
                    f"conversion: {dtype} {layout}",
                    f"{convert:.0f} GB/s, {share:.0%} of a copy on the GPU ({copy / 1e9:.0f} GB/s)",
                    share >= 0.85,
                )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--batch", type=int, default=256, help="samples of measured batches")
    parser.add_argument("--quick", action="store_true", help="fewer pictures and epochs")
    given = parser.parse_args()
    torch.cuda.set_device(given.device)
    print(f"{torch.cuda.get_device_name(given.device)}, torch {torch.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        dataset = packed(Path(folder), 256 if given.quick else 512)
        check_bits(dataset, given.device)
        check_bfloat16(dataset, given.device)
        check_interfaces(dataset, given.device)
        check_busy_streams(dataset, given.device, 1 if given.quick else 3)
        check_memory(dataset, given.device, given.batches)
        measure(dataset, given.device, given.quick, given.batch)
    failed = [name for name, _, passed in ROWS if not passed]
    print(f"{len(ROWS)} checks, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
