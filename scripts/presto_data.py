#!/usr/bin/env python3
"""Writes a small set for each recipe presto-*: files of the kinds and sizes of the PRESTO paper.

    pip install numpy pillow soundfile tokenizers
    python scripts/presto_data.py FOLDER [--samples N] [--only NAME ...]
    meetpoint pack FOLDER/presto-flac flac.set
    meetpoint profile presto-flac flac.set

Each set has two classes, by folder. The content is noise and tones from a fixed seed; the sizes of
pictures, the lengths of recordings and the bytes of pages are the averages of the paper's datasets.
presto-nlp also gets tokenizer.json and embedding.npy, in FOLDER.
"""

import argparse
import pathlib
import struct
import zlib

import numpy as np


def picture(generator: np.random.Generator, height: int, width: int) -> np.ndarray:
    """A smooth picture with some noise, from 0 to 1."""
    rows, columns = np.mgrid[0:height, 0:width]
    channels = []
    for _ in range(3):
        a, b, c = generator.uniform(0.002, 0.03, 3)
        channels.append(np.sin(a * rows + b * columns) * np.cos(c * (rows - columns)))
    smooth = 0.5 + 0.4 * np.stack(channels, axis=2)
    return np.clip(smooth + generator.normal(0, 0.02, smooth.shape), 0, 1)


def jpeg(path: pathlib.Path, pixels: np.ndarray) -> None:
    from PIL import Image

    Image.fromarray((pixels * 255).astype(np.uint8)).save(path, quality=90)


def png16(path: pathlib.Path, pixels: np.ndarray) -> None:
    """A PNG of 16 bits, which Pillow cannot write."""
    height, width, _ = pixels.shape
    rows = (pixels * 65535).astype(">u2").reshape(height, -1).view(np.uint8)
    content = zlib.compress(np.pad(rows, ((0, 0), (1, 0))).tobytes(), 6)
    file = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    for kind, data in [(b"IHDR", header), (b"IDAT", content), (b"IEND", b"")]:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        file += struct.pack(">I", len(data)) + kind + data + checksum
    path.write_bytes(file)


def sound(generator: np.random.Generator, rate: int, seconds: float) -> np.ndarray:
    """A voiced sweep with pauses and noise."""
    time = np.arange(int(rate * seconds)) / rate
    pitch = generator.uniform(90, 220) + 40 * np.sin(2 * np.pi * generator.uniform(0.3, 1) * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    wave = sum(np.sin(number * phase) / number for number in range(1, 12))
    wave *= np.sin(2 * np.pi * 1.5 * time) > -0.5
    return 0.2 * wave + 0.002 * generator.standard_normal(len(time))


def recording(path: pathlib.Path, generator: np.random.Generator, rate: int, mean: float) -> None:
    import soundfile

    soundfile.write(path, sound(generator, rate, mean * generator.uniform(0.6, 1.4)), rate)


def window(path: pathlib.Path, generator: np.random.Generator) -> None:
    """Ten seconds of voltage and current, 6,400 samples a second; a load switches on."""
    time = np.arange(64_000) / 6400
    voltage = 325 * np.sin(2 * np.pi * 50 * time) + generator.standard_normal(64_000)
    load = 1 + 4 * (time > generator.uniform(1, 9))
    current = load * np.sin(2 * np.pi * 50 * time - 0.6)
    np.save(path, np.stack([voltage, current + 0.05 * generator.standard_normal(64_000)]))


def vocabulary() -> np.ndarray:
    """Words of random syllables, the frequent ones first."""
    generator = np.random.default_rng(0)
    ends = ("a", "e", "i", "o", "en", "ing", "st")
    syllables = [a + b for a in "bcdfghjklmnprstvw" for b in ends]
    counts = generator.integers(1, 5, 20_000)
    return np.array(["".join(generator.choice(syllables, count)) for count in counts])


def sentences(generator: np.random.Generator, words: np.ndarray, count: int) -> str:
    """Words by Zipf's law, with numbers and punctuation."""
    picked = words[np.minimum(generator.zipf(1.2, count) - 1, len(words) - 1)].tolist()
    for at in range(0, count, 11):
        picked[at] = picked[at].capitalize() if at % 22 else str(generator.integers(10_000))
        picked[at - 1] += "." if at % 33 else ", don't"
    return " ".join(picked)


def page(path: pathlib.Path, generator: np.random.Generator) -> None:
    """A page of 43 kB, a twelfth of which is text: the rest is script, style and markup."""
    words = vocabulary()
    text = sentences(generator, words, int(520 * generator.uniform(0.4, 1.6)))
    paragraphs = [text[at : at + 400] for at in range(0, len(text), 400)]
    script = "var data=[" + ",".join(map(str, generator.integers(0, 10**6, 2600))) + "];"
    style = "".join(f".c{at}{{margin:{at}px;color:#{at:06x}}}\n" for at in range(220))
    link = '<li class="nav c{0}"><a href="/section/{0}?from=menu" title="Section {0}">{0}</a></li>'
    menu = "\n".join(link.format(at) for at in range(90))
    body = "\n".join(f'<p class="c{at}">{it}</p>' for at, it in enumerate(paragraphs))
    path.write_text(
        f"<!DOCTYPE html><html><head><title>Page</title><style>{style}</style>"
        f"<script>{script}</script></head><body><nav><ul>{menu}</ul></nav>"
        f"<article><h1>Page &amp; more</h1>{body}</article></body></html>\n"
    )


def nlp_files(folder: pathlib.Path) -> None:
    """A byte-level BPE tokenizer, trained on other pages, and a table of its vectors."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    words = vocabulary()
    texts = [sentences(np.random.default_rng(10**6 + it), words, 2000) for it in range(300)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=50_257,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    shape = (tokenizer.get_vocab_size(), 768)
    np.save(folder / "embedding.npy", np.random.default_rng(1).random(shape, dtype=np.float32))


SETS = {
    "presto-cv": (".jpg", lambda path, it: jpeg(path, picture(it, 400, 500))),
    "presto-cv2-jpg": (".jpg", lambda path, it: jpeg(path, picture(it, 1200, 1800))),
    "presto-cv2-png": (".png", lambda path, it: png16(path, picture(it, 1200, 1800))),
    "presto-flac": (".flac", lambda path, it: recording(path, it, 16_000, 12.0)),
    "presto-mp3": (".mp3", lambda path, it: recording(path, it, 48_000, 5.0)),
    "presto-nilm": (".npy", window),
    "presto-nlp": (".html", page),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    arguments = parser.parse_args()
    for name in arguments.only:
        extension, write = SETS[name]
        for number in range(arguments.samples):
            to = arguments.folder / name / ("even", "odd")[number % 2]
            to.mkdir(parents=True, exist_ok=True)
            write(to / f"{number:05}{extension}", np.random.default_rng(number))
        if name == "presto-nlp":
            nlp_files(arguments.folder)
        print(f"{arguments.folder / name}: {arguments.samples} samples")


if __name__ == "__main__":
    main()
