#!/usr/bin/env python3
"""Writes formats.txt: what docs/formats.md says, computed by other means than the crate.

Philox is compared with the known answers of Random123 (kat_vectors) before it is used; SHA-256,
struct packing and number formatting are Python's own. Needs nothing but Python 3.9.

    python3 formats.py > formats.txt
"""

import bisect
import decimal
import fractions
import hashlib
import json
import math
import struct
from fractions import Fraction

MASK = 0xFFFFFFFF


def philox(counter, key):
    """Philox4x32-10, in the notation of the paper: rounds, each but the first bumping the key."""
    L0, R0, L1, R1 = counter
    k0, k1 = key
    for round_number in range(10):
        if round_number:
            k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
        product0, product1 = 0xD2511F53 * L0, 0xCD9E8D57 * L1
        L0, R0, L1, R1 = (
            (product1 >> 32) ^ R0 ^ k0,
            product1 & MASK,
            (product0 >> 32) ^ R1 ^ k1,
            product0 & MASK,
        )
    return [L0, R0, L1, R1]


KAT = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""
for line in KAT.strip().splitlines():
    words = [int(word, 16) for word in line.split()]
    assert philox(words[0:4], words[4:6]) == words[6:10], line


def key_of(seed):
    return (seed & MASK, seed >> 32)


class Draws:
    def __init__(self, seed, epoch, sample, operation, view=0):
        self.view = view
        self.seed, self.epoch, self.sample, self.operation = seed, epoch, sample, operation
        self.count = 0

    def word(self):
        block, place = divmod(self.count, 4)
        self.count += 1
        counter = (
            self.sample & MASK,
            (self.sample >> 32) ^ (self.view << 16),
            self.epoch,
            (self.operation << 24) + block,
        )
        return philox(counter, key_of(self.seed))[place]

    def uniform(self):
        value = self.word() + (self.word() << 32)
        return math.ldexp(value >> 11, -53)

    def uniform_in(self, low, high):
        return low + (high - low) * self.uniform()

    def up_to(self, high):
        count = high + 1
        while True:
            upper, lower = divmod(self.word() * count, 1 << 32)
            if lower >= (1 << 32) % count:
                return upper


def order(length, seed, epoch, device=0, domain=0, stream=0):
    """The samples of an epoch, position by position."""
    side = math.isqrt(length - 1) + 1

    def network(value):
        left, right = divmod(value, side)
        for round_number in range(12):
            low, high, _, _ = philox(
                (right, stream + round_number, epoch, (255 << 24) + (domain << 16) + device),
                key_of(seed),
            )
            offset = ((low + (high << 32)) * side) >> 64
            left, right = right, (left + offset) % side
        return left * side + right

    def sample_at(position):
        value = network(position)
        while value >= length:
            value = network(value)
        return value

    return sample_at


def whole_weights(weights):
    """Integers in proportion to weights, by exact fractions."""
    bits = min(52, 62 - len(weights).bit_length())
    greatest = max(weights)
    # The quotient is rounded to a double, as the definition says; the rest is exact.
    scaled = [Fraction(weight / greatest) * 2**bits for weight in weights]
    return [max(1, math.ceil(it)) if weight > 0 else 0 for it, weight in zip(scaled, weights)]


def weighted(seed, epoch, length, weights):
    """The samples of an epoch with replacement."""
    whole = whole_weights(weights)
    for position in range(length):
        counter = (position & MASK, position >> 32, epoch, (255 << 24) + (3 << 16))
        low, high, _, _ = philox(counter, key_of(seed))
        value = ((low + (high << 32)) * sum(whole)) >> 64
        sample = 0
        while value >= whole[sample]:
            value -= whole[sample]
            sample += 1
        yield sample


def unreplaced(seed, epoch, length, weights):
    """The samples of an epoch without replacement, sorted by exact fractions."""

    def time(sample, weight):
        counter = (sample & MASK, sample >> 32, epoch, (255 << 24) + (4 << 16))
        low, high, _, _ = philox(counter, key_of(seed))
        value = low + (high << 32) + 1
        if value == 2**64:
            return Fraction(0)
        exponent = value.bit_length() - 1
        mantissa, log = value << (63 - exponent), exponent
        for _ in range(48):
            mantissa = mantissa * mantissa >> 63
            digit = mantissa >> 64
            mantissa >>= digit
            log = 2 * log + digit
        return Fraction(64 * 2**48 - log, weight)

    whole = enumerate(whole_weights(weights))
    times = [(time(sample, weight), sample) for sample, weight in whole if weight > 0]
    return [sample for _, sample in sorted(times)[:length]]


def interleave(counts, seed):
    """The device of each batch: all of them sorted by where they stand."""

    def words(device):
        return philox((device, 0, 0, (255 << 24) + (1 << 16)), key_of(seed))

    line = []
    for group, count in enumerate(sorted(set(counts) - {0})):
        devices = [device for device, of_device in enumerate(counts) if of_device == count]
        phase = fractions.Fraction(words(devices[0])[1], 1 << 32)
        turns = sorted(devices, key=lambda device: (words(device)[0], device))
        batches = count * len(devices)
        line += [
            ((j + phase) / batches, group, turns[j % len(turns)]) for j in range(batches)
        ]
    return [device for _, _, device in sorted(line)]


def mixture(seed, epoch, stop, length, datasets, weights):
    """The samples of an epoch of a mixture, counted over all datasets."""
    weights = [Fraction(weight) for weight in weights]
    shares = [at for at, weight in enumerate(weights) if weight > 0]
    if stop == "size":
        exact = [length * weight / sum(weights) for weight in weights]
        lengths = [math.floor(share) for share in exact]
        by_remainder = sorted(shares, key=lambda at: (lengths[at] - exact[at], at))
        for at in by_remainder[: length - sum(lengths)]:
            lengths[at] += 1
    else:
        choose, bound = (min, min) if stop == "first_exhausted" else (max, max)
        ending = choose(shares, key=lambda at: datasets[at] / weights[at])
        nearest = [
            math.floor(datasets[ending] * weight / weights[ending] + Fraction(1, 2))
            for weight in weights
        ]
        lengths = [
            bound(near, have) if weight else 0
            for near, have, weight in zip(nearest, datasets, weights)
        ]
    taken = [0] * len(datasets)
    for dataset in interleave(lengths, seed):
        turn, sample = divmod(taken[dataset], datasets[dataset])
        stream = (dataset << 4) + (turn << 16)
        sample_at = order(datasets[dataset], seed, epoch, domain=5, stream=stream)
        taken[dataset] += 1
        yield sum(datasets[:dataset]) + sample_at(sample)


def aspect_ratio(seed, epoch, factor, size, shuffle):
    """The samples of an epoch in batches of similar aspect ratios, of 40 made-up pictures."""
    edges = [2 ** (step / factor - 1) for step in range(2 * factor + 1)] if factor else [1.0]
    buckets = [[] for _ in range(len(edges) + 1)]
    for sample in range(40):
        height, width = 100 + sample * 37 % 200, 100 + sample * 53 % 200
        if sample == 5:  # Damaged.
            height, width = 1, 1
        buckets[bisect.bisect_right(edges, height / width)].append(sample)

    def permuted(length, number):
        if not shuffle or not length:
            return lambda position: position
        return order(length, seed, epoch, domain=5, stream=number << 4)

    whole, left = [], []
    for number, bucket in enumerate(buckets, 1):
        sample_at = permuted(len(bucket), number)
        samples = [bucket[sample_at(position)] for position in range(len(bucket))]
        end = len(bucket) - len(bucket) % size
        whole += [samples[at : at + size] for at in range(0, end, size)]
        left += samples[end:]
    whole += [left[at : at + size] for at in range(0, len(left), size)]
    short = [whole.pop()] if left and len(left) % size else []
    batch_at = permuted(len(whole), 0)
    for batch in [whole[batch_at(number)] for number in range(len(whole))] + short:
        yield from batch


def batching(seed, epoch, size, drop_last, rank, ranks, devices, *parts):
    """The batches of a rank: (device, samples) of each."""
    first, samples_of = 0, [[] for _ in range(devices)]
    for part, samples in enumerate(parts):
        samples_of[part % devices] += range(first, first + samples)
        first += samples
    row = []
    for device, samples in enumerate(samples_of):
        sample_at = order(len(samples), seed, epoch, device) if samples else None
        shuffled = [samples[sample_at(position)] for position in range(len(samples))]
        batches = [shuffled[at : at + size] for at in range(0, len(shuffled), size)]
        row += [(device, batch) for batch in batches if len(batch) == size or not drop_last]
    whole = len(row)
    if drop_last:
        row = row[: whole - whole % ranks]
    else:
        row += [row[at % whole] for at in range((ranks - whole % ranks) % ranks)]
    own = [
        [batch for device, batch in row[rank::ranks] if device == wanted]
        for wanted in range(devices)
    ]
    pattern = interleave([len(batches) for batches in own], seed)
    return [(device, own[device].pop(0)) for device in pattern]


def crc32c(data):
    crc = MASK
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ MASK


assert crc32c(b"123456789") == 0xE3069283


ELEMENTS = {"bool": 1, "uint8": 2, "int64": 9, "float32": 11}
KINDS = {
    "tensor": 1, "ragged": 2, "bytes": 3, "text": 4, "padded": 5, "padded ragged": 6, "shaped": 7,
}


def align(offset):
    return -(-offset // 64) * 64


def slot_table(columns, samples):
    """Entries of the table, in the order of the columns, and the bytes of the payload.

    A column is (name, kind, element, axes, bytes of an element, rows, checksum); rows are those of
    all samples together where the length varies, and elements where the shape does.
    """
    def group(column):
        name, kind = column[0], column[1]
        return 0 if name == "image" else 1 if kind in ("tensor", "padded") else 2

    entries, end = {}, 0
    for column in sorted(columns, key=group):
        name, kind, element, axes, element_bytes, rows, checksum = column
        offset = align(end)
        row_bytes = element_bytes
        for axis in axes if kind != "shaped" else ():
            row_bytes *= axis
        offsets = 0 if kind in ("tensor", "padded") else 8 * (samples + 1)
        shapes = 8 * len(axes) * samples if kind == "shaped" else 0
        length = rows * row_bytes + offsets + shapes
        end = offset + length
        entries[name] = struct.pack(
            "<IHHIIQQQ6I", crc32c(name.encode()), KINDS[kind], ELEMENTS[element], len(axes),
            checksum, offset, length, rows, *(list(axes) + [0] * (6 - len(axes))),
        )
    return b"".join(entries[column[0]] for column in columns), end


def slot_header(epoch, batch, generation, samples, seed, recipe, columns):
    table, payload_bytes = slot_table(columns, samples)
    head = struct.pack(
        "<8sIIIIIIQQ32s",
        b"MEETSLOT", 3, len(columns), epoch, batch, generation, samples, seed, payload_bytes,
        recipe,
    )
    head = (head.ljust(128, b"\0") + table).ljust(4092, b"\0")
    return head + struct.pack("<I", crc32c(head))


def canonical(value):
    """RFC 8259 JSON, keys sorted, floats as plain decimals."""
    if isinstance(value, dict):
        members = (json.dumps(key) + ":" + canonical(value[key]) for key in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float):
        text = format(decimal.Decimal(repr(value)), "f")
        return text[:-2] if text.endswith(".0") else text
    return json.dumps(value)


RECIPES = {
    "train": [
        {"name": "decode"},
        {
            "name": "random_resized_crop", "size": [224, 224], "scale": [0.08, 1.0],
            "ratio": [3 / 4, 4 / 3], "interpolation": "bilinear", "antialias": True,
        },
        {"name": "random_horizontal_flip", "p": 0.5},
    ],
    "evaluate": [
        {"name": "decode"},
        {"name": "resize", "size": 256, "interpolation": "bicubic", "antialias": False},
        {"name": "center_crop", "size": [224, 192]},
        {"name": "to_dtype", "dtype": "float32", "scale": True},
        {"name": "normalize", "mean": [0.485, 0.456, 0.406], "std": [1e-7, 1e22, 1.5e-40]},
        {"name": "layout", "layout": "NCHW"},
    ],
    "augment": [
        {"name": "decode"},
        {"name": "random_vertical_flip", "p": 0.25},
        {
            "name": "color_jitter", "brightness": [1 - 0.4, 1 + 0.4], "contrast": [1.0, 1.0],
            "saturation": [0.5, 2.0], "hue": [-0.1, 0.1],
        },
        {"name": "random_grayscale", "p": 0.1},
        {"name": "grayscale", "num_output_channels": 1},
        {"name": "to_dtype", "dtype": "float16", "scale": False},
        {"name": "normalize", "mean": [0.5], "std": [0.25]},
    ],
    "nested": [
        {"name": "decode"},
        {
            "name": "random_choice", "p": [1.0, 0.5],
            "operations": [
                {
                    "name": "random_apply", "p": 0.8,
                    "operations": [
                        {"name": "random_solarize", "threshold": 128.0, "p": 1.0},
                        {"name": "random_posterize", "bits": 4, "p": 0.5},
                    ],
                },
                {
                    "name": "random_order",
                    "operations": [
                        {"name": "random_channel_permutation"},
                        {"name": "adjust_gamma", "gamma": 0.1, "gain": 1.0},
                    ],
                },
            ],
        },
        {"name": "random_choice", "p": [], "operations": [{"name": "random_invert", "p": 0.5}]},
    ],
}


def main():
    for seed, epoch, sample, operation in [
        (0, 0, 0, 0),
        (42, 3, 7, 1),
        (0xFEDCBA9876543210, 0xFFFFFFFF, 0x123456789ABCDEF0, 254),
    ]:
        key = f"{seed} {epoch} {sample} {operation}"
        draws = Draws(seed, epoch, sample, operation)
        print("words", key, ":", *(draws.word() for _ in range(10)))
        for view in [1, 7, 4095] if sample < 2**48 else []:
            draws = Draws(seed, epoch, sample, operation, view)
            print("view_words", key, view, ":", *(draws.word() for _ in range(10)))
        draws = Draws(seed, epoch, sample, operation)
        print("uniform", key, ":", *(struct.pack(">d", draws.uniform()).hex() for _ in range(5)))
        draws = Draws(seed, epoch, sample, operation)
        values = (draws.uniform_in(0.08, 1.0) for _ in range(5))
        print("uniform_in", key, ":", *(struct.pack(">d", value).hex() for value in values))
        draws = Draws(seed, epoch, sample, operation)
        highs = [0, 1, 9, 223, 2**31 - 1, 2**31, 2**31 + 2**30, MASK - 1, MASK]
        print("up_to", key, ":", *(f"{high}={draws.up_to(high)}" for high in highs * 3))
    for length, seed, epoch in [(1, 5, 0), (2, 5, 0), (10, 0, 0), (10, 0, 1), (101, 2**63, 9)]:
        sample_at = order(length, seed, epoch)
        samples = [sample_at(position) for position in range(length)]
        assert sorted(samples) == list(range(length))
        print("order", length, seed, epoch, ":", *(f"{i}={s}" for i, s in enumerate(samples)))
    for length, seed, epoch in [(1_281_167, 42, 0), (2**40 + 1, 42, 89), (2**64 - 1, 1, MASK)]:
        sample_at = order(length, seed, epoch)
        positions = [0, 1, 2, length // 3, length - 1]
        print("order", length, seed, epoch, ":", *(f"{i}={sample_at(i)}" for i in positions))
    for seed, epoch, length, weights in [
        (42, 0, 20, [1.0, 2.0, 3.0, 4.0]),
        (2**64 - 1, MASK, 30, [0.1, 0.0, 1e-300, 7.5, 1e9, 0.3, 2.0, 0.0]),
        (7, 3, 40, [1 / (n % 5 + 1) for n in range(100)]),
    ]:
        words = " ".join(map(repr, weights))
        print("weighted", seed, epoch, length, words, ":", *weighted(seed, epoch, length, weights))
        length = min(length, sum(weight > 0 for weight in weights))
        samples = unreplaced(seed, epoch, length, weights)
        print("unreplaced", seed, epoch, length, words, ":", *samples)
    for seed, counts in [
        (0, (5, 5)),
        (7, (10, 0, 3, 10, 1)),
        (2**63 + 5, (40, 41, 41, 40, 200)),
        (1, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
    ]:
        devices = interleave(counts, seed)
        assert all(devices.count(device) == count for device, count in enumerate(counts))
        print("interleave", seed, *counts, ":", *(f"{i}={d}" for i, d in enumerate(devices)))
    for seed, epoch, stop, length, datasets, weights in [
        (42, 0, "first_exhausted", 0, (7, 30), (1, 3)),
        (7, 2, "all_exhausted", 0, (5, 40, 11), (0.5, 1, 0)),
        (2**63 + 1, MASK, "size", 50, (9, 4, 20, 4), (3, 3, 1, 2)),
    ]:
        key = [seed, epoch, stop, length, *datasets, *weights]
        print("mixture", *key, ":", *mixture(seed, epoch, stop, length, datasets, weights))
    for key in [
        (42, 0, 3, 0, 0, 1, 1, 7, 4),
        (42, 1, 4, 0, 2, 4, 1, 30, 40),
        (42, 1, 4, 1, 2, 4, 1, 30, 40),
        (9, 2, 3, 0, 0, 1, 2, 10, 11, 3),
        (9, 2, 3, 1, 0, 1, 3, 10, 11, 4, 20, 0, 1),
        (2**64 - 1, 3, 2, 0, 0, 3, 2, 10, 11, 3),
        (2**64 - 1, 3, 2, 0, 2, 3, 2, 10, 11, 3),
        (5, 0, 2, 1, 3, 4, 3, 12, 9, 14, 1),
        (5, 0, 8, 0, 4, 5, 2, 3, 9),
    ]:
        batches = (f"{device}=" + ",".join(map(str, got)) for device, got in batching(*key))
        print("batching", *key, ":", *batches)
    header = slot_header(
        5, 4711, 2, 2, 0x0123456789ABCDEF, bytes(range(32)),
        [
            ("image", "tensor", "float32", (3, 224, 192), 4, 2, 0xDEADBEEF),
            ("key", "text", "uint8", (), 1, 11, 1),
            ("boxes", "ragged", "float32", (4,), 4, 5, 2),
            ("label", "tensor", "int64", (), 8, 2, 3),
        ],
    )
    print("slot :", header[:384].hex(), header[-4:].hex())
    padded = slot_header(
        5, 4711, 2, 2, 0x0123456789ABCDEF, bytes(range(32)),
        [
            # Of 10 x 6 and 7 x 9 pixels.
            ("image", "padded", "uint8", (10, 9, 3), 1, 2, 1),
            ("image_size", "tensor", "int64", (2,), 8, 2, 2),
            ("padding_mask", "padded", "bool", (10, 9), 1, 2, 3),
            # Three objects in all.
            ("masks", "padded ragged", "uint8", (10, 9), 1, 3, 4),
        ],
    )
    print("slot_padded :", padded[:384].hex(), padded[-4:].hex())
    listed = slot_header(
        5, 4711, 2, 2, 0x0123456789ABCDEF, bytes(range(32)),
        [
            ("image", "shaped", "uint8", (0, 0, 3), 1, (60 + 63) * 3, 1),
            # One object in the first picture, two in the second.
            ("masks", "shaped", "uint8", (0, 0, 0), 1, 60 + 2 * 63, 2),
        ],
    )
    print("slot_listed :", listed[:256].hex(), listed[-4:].hex())
    for key in [(42, 0, 3, 4, 1), (42, 1, 3, 4, 1), (7, 2, 0, 5, 1), (7, 0, 2, 3, 0)]:
        print("aspect_ratio", *key, ":", *aspect_ratio(*key))
    for name, operations in RECIPES.items():
        text = canonical(operations)
        digest = hashlib.sha256(b"meetpoint recipe 1\n" + text.encode()).hexdigest()
        print("recipe", name, ":", digest, text)


main()
