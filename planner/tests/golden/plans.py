#!/usr/bin/env python3
"""Writes profile.csv, a made-up profile, and plans.txt, the plans that it leads to.

    python3 plans.py

The plans are found by trying every form and cache with the closed form of a host alone without
background threads and without steps: an epoch takes samples / rate. Only the standard library.
"""

import csv
import math
from pathlib import Path

SAMPLES, BATCH = 6400, 32
HERE = Path(__file__).parent

# form, operations, operation, codec: offline seconds, bytes a sample, cold and warm samples/s of
# one thread, application-cache samples/s, seconds of processing.
FORMS = {
    ("packed", 0, "", "none"): (4.0, 110_000, 180.0, 185.0, 186.0, 3.0),
    ("coefficients-fast", 0, "", "none"): (40.0, 190_000, 300.0, 320.0, 330.0, 38.0),
    ("prepared", 1, "decode", "none"): (38.0, 600_000, 400.0, 700.0, 900.0, 30.0),
    ("prepared", 1, "decode", "lz4"): (46.0, 420_000, 380.0, 500.0, 900.0, 40.0),
    ("prepared", 2, "resize", "none"): (41.0, 190_000, 2_400.0, 2_900.0, 3_300.0, 36.0),
    ("prepared", 2, "resize", "lz4"): (45.0, 150_000, 2_000.0, 2_200.0, 3_300.0, 43.0),
    ("prepared", 4, "to_dtype", "none"): (44.0, 602_112, 1_100.0, 1_500.0, 5_000.0, 37.0),
    ("prepared", 4, "to_dtype", "lz4"): (58.0, 300_000, 1_300.0, 1_350.0, 5_000.0, 55.0),
}
COLUMNS = (
    "form,operations,operation,codec,threads,cache,dataset_samples,dataset_bytes,samples,runs,"
    "offline_seconds,offline_error,process_seconds,save_seconds,stored_bytes,stored_error,"
    "cached_bytes,cold_per_second,cold_deviation,per_second,per_second_deviation,sampling_error,"
    "cpu_seconds,context_switches,peak_memory_bytes,disk_bytes_per_second,cache_drop,joules"
).split(",")
RAW = {0: 110_000, 1: 600_000, 2: 190_000, 4: 602_112}


def rows():
    for (form, operations, operation, codec), it in FORMS.items():
        offline, size, cold, page, application, process = it
        for threads in (1, 2):
            faster = 1.0 if threads == 1 else 1.9
            for cache, rate in (("cold", cold), ("page", page), ("application", application)):
                raw = size if codec == "none" else RAW[operations]
                yield [
                    form, operations, operation, codec, threads, cache, SAMPLES,
                    110_000 * SAMPLES, 256, 3, offline, 0.1, process, offline - process,
                    size * SAMPLES, 0.0, raw * SAMPLES, cold * faster, 0.01 * cold,
                    rate * faster, 0.01 * rate, 0.001, 1.0 / rate, 1.0, 1 << 28, 2e9, "direct", "",
                ]


def cached_bytes(content: float) -> int:
    """The budget that holds every sample, as docs/planning.md defines it."""
    blocks = math.ceil((content / SAMPLES + 8) / 4088) + 0.5
    positions = SAMPLES + SAMPLES // 16 + 1024
    return 512 + 8 * SAMPLES + 8 * (SAMPLES + positions) + math.ceil(blocks * (4096 + 96) * SAMPLES)


def outlooks(memory_limit):
    """Every form and cache: (offline, storage, memory, first epoch, later epochs, names)."""
    for (form, operations, operation, codec), it in FORMS.items():
        offline, size, cold, _, _, _ = it
        is_plain = form == "packed"
        name = form if operations == 0 else f"{operations}-{operation}"
        base = (0.0 if is_plain else offline, 0 if is_plain else size * SAMPLES)
        batches = 3 * BATCH * 150_528 * 4
        yield (*base, batches, SAMPLES / cold, SAMPLES / cold, name, codec, "-")
        for (_, point, point_name, point_codec), other in FORMS.items():
            if point < max(operations, 1) or point_codec != "none":
                continue
            needed = cached_bytes(other[1] * SAMPLES)
            most = math.inf if memory_limit is None else memory_limit - memory_limit // 4
            share = min(1.0, most / needed)
            hits = math.floor(share * SAMPLES) / SAMPLES
            if hits == 0:
                continue
            later = SAMPLES * (hits / other[4] + (1 - hits) / cold)
            # Filling executes the cached operations in full, where nothing was executed before.
            fill = other[5] / SAMPLES * 1.9 + 1 / other[4]
            longer = 1.0 if operations else max(1.0, fill * cold)
            first = SAMPLES / cold * (1 + share * (longer - 1))
            memory = batches + min(needed, most)
            yield (*base, memory, first, later, name, codec, f"{point}-{point_name}")


def main():
    with open(HERE / "profile.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows():
            writer.writerow(row)
    lines = ["# epochs storage-limit memory-limit: stored codec cached seconds"]
    for epochs in (1, 2, 5, 20, 100):
        for storage in (None, 2_000_000_000, 0):
            for memory in (None, 2_000_000_000, 100_000_000):
                fitting = []
                for offline, stored, used, first, later, *names in outlooks(memory):
                    if names[2] != "-" and epochs == 1:
                        continue
                    if storage is not None and stored > storage:
                        continue
                    if memory is not None and used > memory:
                        continue
                    fitting.append((offline + first + (epochs - 1) * later, names))
                least = min(seconds for seconds, _ in fitting)
                seconds, names = next(it for it in fitting if it[0] <= least * 1.005)
                limits = " ".join("-" if it is None else str(it) for it in (storage, memory))
                lines.append(f"{epochs} {limits}: {' '.join(names)} {seconds!r}")
    (HERE / "plans.txt").write_text("\n".join(lines) + "\n")


main()
