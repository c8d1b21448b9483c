"""Sound and signals: packed from folders, loaded as arrays, refused with the remedy."""

from __future__ import annotations

import io
import wave
from pathlib import Path
from typing import Any

import numpy
import pytest

import meetpoint
from meetpoint import transforms as T

RATE = 8_000


def recording(number: int) -> numpy.ndarray:
    """Noise of 16 bits, of a length of its own."""
    generator = numpy.random.default_rng(number)
    return generator.integers(-20_000, 20_000, 2_000 + 50 * number, numpy.int16)


def wav(samples: numpy.ndarray) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Twelve recordings of two classes."""
    folder = tmp_path_factory.mktemp("sounds")
    for number in range(12):
        to = folder / "files" / ("dog" if number >= 6 else "cat")
        to.mkdir(parents=True, exist_ok=True)
        (to / f"{number:02}.wav").write_bytes(wav(recording(number)))
    return meetpoint.pack(folder / "files", folder / "sounds.set").destination


def test_sound_is_loaded_at_its_own_rate_as_it_was_recorded(sounds: str) -> None:
    recipe = T.Compose([T.DecodeAudio(sample_rate=RATE), T.FixLength(length=2_200, value=0.5)])
    with meetpoint.Loader(sounds, recipe=recipe, batch_size=4) as loader:
        batches = [(numpy.array(sound), numpy.array(label)) for sound, label in loader]
    sound = numpy.concatenate([it for it, _ in batches])
    assert (sound.shape, sound.dtype) == ((12, 1, 2_200), numpy.float32)
    for number in range(12):
        expected = numpy.full(2_200, 0.5, numpy.float32)
        samples = recording(number)[:2_200]
        expected[: len(samples)] = samples / numpy.float32(32_768)
        assert numpy.array_equal(sound[number, 0], expected)
    assert numpy.concatenate([label for _, label in batches]).tolist() == [0] * 6 + [1] * 6


def test_random_parts_differ_by_epoch_and_spectrograms_have_the_declared_shape(
    sounds: str,
) -> None:
    recipe = T.Compose(
        [
            T.DecodeAudio(sample_rate=16_000),
            T.RandomTimeCrop(length=1_600),
            T.MelSpectrogram(n_fft=320, hop_length=160, n_mels=40),
            T.Log(base="10", multiplier=10.0),
        ]
    )
    output = recipe.output
    assert output is not None and list(output["shape"]) == [1, 40, 11]
    settings: Any = {"batch_size": 12, "seed": 3, "columns": ["audio"]}
    with meetpoint.Loader(sounds, recipe=recipe, **settings) as loader:
        epochs = [numpy.array(batch["audio"]) for _ in range(2) for batch in loader]
    assert [it.shape for it in epochs] == [(12, 1, 40, 11)] * 2
    assert not numpy.array_equal(*epochs)
    assert numpy.isfinite(epochs).all()


def test_signals_become_features_as_by_numpy(tmp_path: Path) -> None:
    generator = numpy.random.default_rng(5)
    windows = generator.standard_normal((8, 2, 1_280)) * [[[325.0], [5.0]]]
    for number, window in enumerate(windows):
        (tmp_path / "files").mkdir(exist_ok=True)
        numpy.save(tmp_path / "files" / f"{number}.npy", window)
    dataset = meetpoint.pack(tmp_path / "files", tmp_path / "signals.set").destination
    recipe = T.Compose(
        [T.DecodeSignal(num_channels=2), T.PowerFeatures(period=128), T.FixLength(length=10)]
    )
    with meetpoint.Loader(dataset, recipe=recipe, batch_size=8, columns=["image"]) as loader:
        (features,) = [numpy.array(batch["image"]) for batch in loader]
    periods = windows.reshape(8, 2, 10, 128)
    active = (periods[:, 0] * periods[:, 1]).mean(-1)
    rms = numpy.sqrt(numpy.square(periods).mean(-1))
    apparent = rms[:, 0] * rms[:, 1]
    reactive = numpy.sqrt(numpy.maximum(apparent**2 - active**2, 0))
    cusum = numpy.cumsum(rms[:, 1] - rms[:, 1].mean(-1, keepdims=True), axis=-1)
    expected = numpy.stack([active, reactive, rms[:, 1], cusum], axis=1)
    assert features.shape == (8, 4, 10)
    numpy.testing.assert_allclose(features, expected, rtol=2e-5, atol=1e-5)


def test_a_recording_that_is_cut_short_is_named(sounds: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.wav").write_bytes(wav(recording(1))[:1_001])
    dataset = meetpoint.pack(tmp_path / "files", tmp_path / "damaged.set").destination
    settings: Any = {"recipe": "presto-flac", "batch_size": 1}
    with meetpoint.Loader(dataset, **settings) as loader:
        with pytest.raises(meetpoint.errors.SampleError, match=r"a\.wav.*ends in the middle"):
            list(loader)


@pytest.mark.parametrize(
    ("transforms", "words"),
    [
        ([T.DecodeAudio(sample_rate=16_000), T.Resize(8)], "audio"),
        ([T.Resize(8), T.Log()], "image"),
        ([T.DecodeSignal(num_channels=2), T.MelSpectrogram(n_fft=64, hop_length=8)], "signal"),
        ([T.DecodeAudio(sample_rate=16_000), T.MelSpectrogram(n_fft=22, hop_length=8)], "n_fft"),
    ],
)
def test_a_transform_that_cannot_follow_is_refused(transforms: Any, words: str) -> None:
    with pytest.raises(meetpoint.errors.RecipeError, match=words):
        T.Compose(transforms)
