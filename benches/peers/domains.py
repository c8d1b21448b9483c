#!/usr/bin/env python3
"""Measures sound, signals and text beside librosa, torchaudio, NumPy, tokenizers, Beautiful Soup.

    cargo build --release -p meetpoint-jpeg-benches --bin operation-times
    pip install librosa==0.11.0 soundfile numpy torch torchaudio tokenizers beautifulsoup4 lxml
    python domains.py [--server PATH] [--markdown FILE] [--only text]

Every library uses one thread. The task is from the bytes of a file in memory to the array of the
recipe; `soundfile` (libsndfile) decodes for librosa and torchaudio, as it does in both. Times are
CPU time of the process, the least of many turns; ratios are the time of a peer over ours. A peer
that is not there is left out.

Text is a file of 16 documents for us, and a batch of the same 16 for the peers, which return lists
of numbers. Both have seen their words before.
"""

import argparse
import io
import itertools
import os
import pathlib
import subprocess
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np

ROUNDS, TURN_NS = 9, 60_000_000
SERVER = pathlib.Path(__file__).parents[2] / "target/release/operation-times"


def operation(name, **keys):
    """An operation in TOML."""
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in keys.items()]
    return "\n".join(["[[operation]]", f'name = "{name}"', *lines, ""])


def speech(rate, seconds):
    """A voiced sweep with pauses and noise."""
    generator = np.random.default_rng(3)
    at = np.arange(int(rate * seconds)) / rate
    pitch = 2 * np.pi * np.cumsum(140 + 40 * np.sin(2 * np.pi * 0.7 * at)) / rate
    wave = sum(np.sin(n * pitch) / n for n in range(1, 12)) * (np.sin(2 * np.pi * 1.5 * at) > -0.5)
    return 0.2 * wave + 0.002 * generator.standard_normal(len(at))


def encoded(samples, rate, form):
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form, subtype=None if form == "MP3" else "PCM_16")
    return file.getvalue()


def least(function):
    """The least CPU time of a call in nanoseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started, calls = time.process_time_ns(), 0
        while time.process_time_ns() - started < TURN_NS:
            function()
            calls += 1
        best = min(best, (time.process_time_ns() - started) / calls)
    return best


def librosa_task(file, target, keys):
    import librosa
    import soundfile

    def run():
        samples, rate = soundfile.read(io.BytesIO(file), dtype="float32")
        if rate != target:
            samples = librosa.resample(samples, orig_sr=rate, target_sr=target)
        mel = librosa.feature.melspectrogram(y=samples, sr=target, n_mels=80, **keys)
        return np.log(np.maximum(mel, 1e-10))

    return run


def torchaudio_task(file, target, keys):
    import soundfile
    import torch
    import torchaudio

    torch.set_num_threads(1)
    transform = torchaudio.transforms.MelSpectrogram(sample_rate=target, n_mels=80, **keys)
    resamplers = {}

    def run():
        samples, rate = soundfile.read(io.BytesIO(file), dtype="float32")
        samples = torch.from_numpy(samples)[None]
        if rate != target:
            if rate not in resamplers:
                resamplers[rate] = torchaudio.transforms.Resample(rate, target)
            samples = resamplers[rate](samples)
        return torch.log(torch.clamp(transform(samples), min=1e-10))

    return run


def numpy_task(file):
    def run():
        voltage, current = np.load(io.BytesIO(file))
        voltage, current = voltage.reshape(-1, 128), current.reshape(-1, 128)
        active = np.mean(voltage * current, axis=1)
        rms = np.sqrt(np.mean(np.square(current), axis=1))
        apparent = np.sqrt(np.mean(np.square(voltage), axis=1)) * rms
        reactive = np.sqrt(np.maximum(apparent**2 - active**2, 0))
        return np.stack([active, reactive, rms, np.cumsum(rms - np.mean(rms))])

    return run


def documents():
    """Sixteen texts of words by Zipf's law, with numbers and punctuation, 56 kB in all."""
    generator = np.random.default_rng(5)
    ends = ("a", "e", "i", "o", "en", "ing", "st")
    syllables = [a + b for a in "bcdfghjklmnprstvw" for b in ends]
    counts = generator.integers(1, 5, 20_000)
    words = np.array(["".join(generator.choice(syllables, count)) for count in counts])

    def one():
        picked = words[np.minimum(generator.zipf(1.2, 600) - 1, len(words) - 1)].tolist()
        for at in range(0, 600, 11):
            picked[at] = picked[at].capitalize() if at % 22 else str(generator.integers(10_000))
            picked[at - 1] += "." if at % 33 else ", don't"
        return " ".join(picked) + "\n"

    return [one() for _ in range(16)]


def trained_tokenizer(texts, path):
    """A byte-level BPE vocabulary like that of GPT-2."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(path)


def tokenizers_task(texts, path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)

    def run():
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [it.ids for it in encoded]

    return run


def soup_task(pages, path):
    from bs4 import BeautifulSoup

    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)

    def run():
        texts = [BeautifulSoup(page, "lxml").get_text("\n", strip=True) for page in pages]
        return [it.ids for it in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    return run


def text_tasks(folder):
    """The same of text; the tokenizer goes to a folder."""
    texts, path = documents(), f"{folder}/tokenizer.json"
    try:
        trained_tokenizer(texts, path)
    except ImportError as error:
        print(f"text is left out: {error}")
        return
    decode, after = operation("decode_text"), operation("pad_sequence", length=65_536)
    tokenize = operation("tokenize", tokenizer=path)
    recipe = decode + tokenize + after
    yield "BPE", "".join(texts).encode(), recipe, {"tokenizers": (tokenizers_task, (texts, path))}
    pages = [
        "<html><head><title>t</title><style>p{margin:0}</style></head><body>"
        + "".join(f'<p class="c{at}">{line}</p>' for at, line in enumerate(text.split(". ")))
        + "</body></html>"
        for text in texts
    ]
    recipe = decode + operation("html_to_text") + tokenize + after
    peers = {"Beautiful Soup (lxml) and tokenizers": (soup_task, (pages, path))}
    yield "HTML to BPE", "".join(pages).encode(), recipe, peers


def tasks():
    """Name, file, recipe, peers."""
    keys = {"n_fft": 320, "hop_length": 160}
    after = operation("log") + operation("fix_length", length=1000)

    def sound(form, rate, target, keys):
        file = encoded(speech(rate, 10.0), rate, form)
        mel = operation("mel_spectrogram", n_mels=80, **keys)
        recipe = operation("decode_audio", sample_rate=target) + mel + after
        peers = {"librosa": (librosa_task, (file, target, keys))}
        peers["torchaudio"] = (torchaudio_task, (file, target, keys))
        resampled = "" if rate == target else f", to {target // 1000} kHz"
        return f"{form}, {rate / 1000:g} kHz{resampled}", file, recipe, peers

    yield sound("WAV", 16_000, 16_000, keys)
    yield sound("FLAC", 16_000, 16_000, keys)
    yield sound("MP3", 16_000, 16_000, keys)
    yield sound("MP3", 48_000, 48_000, {"n_fft": 960, "hop_length": 480})
    yield sound("FLAC", 44_100, 16_000, keys)
    at = np.arange(64_000) / 6400
    window = np.stack([325 * np.sin(314.16 * at), 5 * np.sin(314.16 * at - 0.5)])
    file = io.BytesIO()
    np.save(file, window)
    recipe = operation("decode_signal", num_channels=2) + operation("power_features", period=128)
    recipe += operation("fix_length", length=500)
    numpy_peer = {"NumPy": (numpy_task, (file.getvalue(),))}
    yield "2 x 64000 float64 to 4 x 500 features", file.getvalue(), recipe, numpy_peer


def ours(server, file, recipe):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "file").write_bytes(file)
        (folder / "recipe.toml").write_text(recipe)
        done = subprocess.run(
            [server, folder / "file", folder / "recipe.toml"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return float(done.stdout.split("\t")[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", type=pathlib.Path, default=SERVER)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--only", choices=["text", "series"])
    arguments = parser.parse_args()
    folder = tempfile.TemporaryDirectory()
    of_series = () if arguments.only == "text" else tasks()
    of_text = () if arguments.only == "series" else text_tasks(folder.name)
    header = "| task | ours, ms | samples per core-second | peer, ms | ratio |"
    rows = [header, "|---|---|---|---|---|"]
    for name, file, recipe, peers in itertools.chain(of_series, of_text):
        mine = ours(arguments.server, file, recipe)
        measured, ratios = [], []
        for peer, (make, values) in peers.items():
            try:
                theirs = least(make(*values))
            except ImportError as error:
                print(f"{peer} is left out: {error}")
                continue
            measured.append(f"{peer} {theirs / 1e6:.2f}")
            ratios.append(f"{theirs / mine:.1f}")
        # Again, so that a change of the machine's speed shows in both.
        mine = min(mine, ours(arguments.server, file, recipe))
        cells = [name, f"{mine / 1e6:.3f}", f"{1e9 / mine:.0f}"]
        cells += [", ".join(measured), ", ".join(ratios)]
        rows.append(f"| {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
