"""Writes series/: recordings, measurements, and what other libraries make of them.

    python3 series.py

with librosa 0.11.0, soundfile 0.14.0 (libsndfile), torchaudio 2.11.0 and NumPy. Files that end in
.npy are float32 unless their name says otherwise. kernels/src/audio/golden_tests.rs and
kernels/src/signal/golden_tests.rs state the tolerances.
"""

import pathlib

import librosa
import numpy as np
import soundfile
import torch
import torchaudio

FOLDER = pathlib.Path(__file__).parent / "series"


def sound(rate: int, seconds: float, channels: int) -> np.ndarray:
    """Sweeps with harmonics, pauses and noise, from -1 to 1: [time, channels]."""
    random = np.random.default_rng(7)
    time = np.arange(int(rate * seconds)) / rate
    columns = []
    for channel in range(channels):
        phase = 2 * np.pi * (110.0 * (channel + 1) * time + 900.0 * time**2)
        wave = 0.5 * np.sin(phase) + 0.2 * np.sin(3 * phase) + 0.1 * np.sign(np.sin(0.5 * phase))
        wave *= 0.5 + 0.5 * np.sin(2 * np.pi * 3.0 * time)
        wave[len(wave) // 2 : len(wave) // 2 + rate // 20] = 0.0
        columns.append(wave + 0.01 * random.standard_normal(len(time)))
    return np.clip(np.stack(columns, axis=1), -0.99, 0.99)


def save(name: str, array: np.ndarray) -> None:
    np.save(FOLDER / f"{name}.npy", np.ascontiguousarray(array))


def save_float(name: str, array: np.ndarray) -> None:
    save(name, array.astype(np.float32))


def recordings() -> None:
    files = {
        "mono16.wav": (16_000, 0.5, 1, "PCM_16"),
        "stereo24.wav": (44_100, 0.15, 2, "PCM_24"),
        "float.wav": (8_000, 0.2, 1, "FLOAT"),
        "bytes.wav": (8_000, 0.2, 1, "PCM_U8"),
        "stereo16.flac": (44_100, 0.3, 2, "PCM_16"),
        "mono24.flac": (22_050, 0.2, 1, "PCM_24"),
        "mono.mp3": (16_000, 0.5, 1, None),
        "stereo.mp3": (44_100, 0.4, 2, None),
    }
    for name, (rate, seconds, channels, subtype) in files.items():
        soundfile.write(FOLDER / name, sound(rate, seconds, channels), rate, subtype=subtype)
        decoded, read_rate = soundfile.read(FOLDER / name, dtype="float32", always_2d=True)
        assert read_rate == rate
        save(f"{name}.decoded", decoded.T)


def resampled() -> None:
    for name, target in [
        ("stereo16.flac", 16_000),
        ("mono16.wav", 44_100),
        ("mono24.flac", 16_000),
        ("float.wav", 16_000),
    ]:
        # In float64, so that torchaudio computes its filter in that.
        decoded = torch.from_numpy(np.load(FOLDER / f"{name}.decoded.npy")).double()
        rate = soundfile.info(FOLDER / name).samplerate
        resampled = torchaudio.functional.resample(decoded, rate, target)
        save(f"{name}.{target}", resampled.float().numpy())
    decoded = np.load(FOLDER / "stereo16.flac.decoded.npy")
    save("stereo16.flac.mono", librosa.to_mono(decoded)[None])


def spectrograms() -> None:
    # In float64, so that what is compared is the error of one side.
    decoded = np.load(FOLDER / "mono16.wav.decoded.npy")[0].astype(np.float64)
    mel = librosa.feature.melspectrogram
    presto = mel(y=decoded, sr=16_000, n_fft=320, hop_length=160, n_mels=80)
    save_float("presto", presto)
    save_float("presto_log", np.log(np.maximum(presto, 1e-10)))
    save_float("presto_db", librosa.power_to_db(presto, ref=1.0, amin=1e-10, top_db=None))
    save_float(
        "whisper",
        mel(y=decoded, sr=16_000, n_fft=400, hop_length=160, n_mels=80, pad_mode="reflect"),
    )
    save_float(
        "edges",
        mel(
            y=decoded,
            sr=16_000,
            n_fft=512,
            win_length=400,
            hop_length=100,
            n_mels=40,
            fmin=50.0,
            fmax=7600.0,
            power=1.0,
            center=False,
            norm=None,
        ),
    )
    # Its filter, too.
    torch.set_default_dtype(torch.float64)
    transform = torchaudio.transforms.MelSpectrogram(
        sample_rate=16_000, n_fft=400, hop_length=160, n_mels=64
    )
    save_float("torchaudio", transform(torch.from_numpy(decoded)).numpy())
    save_float("magnitude", np.abs(librosa.stft(decoded, n_fft=1024, hop_length=512)))


def period_rms(values: np.ndarray, period: int) -> np.ndarray:
    return np.sqrt(np.mean(np.square(values.reshape(-1, period)), axis=1))


def features(voltage: np.ndarray, current: np.ndarray, period: int) -> np.ndarray:
    """Active power, reactive power, RMS of the current, CUSUM of it, in float64."""
    whole = len(voltage) // period * period
    voltage, current = voltage[:whole], current[:whole]
    active = np.mean((voltage * current).reshape(-1, period), axis=1)
    rms = period_rms(current, period)
    apparent = period_rms(voltage, period) * rms
    reactive = np.sqrt(np.maximum(apparent**2 - active**2, 0.0))
    return np.stack([active, reactive, rms, np.cumsum(rms - np.mean(rms))])


def signals() -> None:
    random = np.random.default_rng(11)
    time = np.arange(1300) / 6400
    voltage = 325.0 * np.sin(2 * np.pi * 50.0 * time) + random.standard_normal(1300)
    load = 1.0 + (time > 0.1) * 4.0
    current = load * np.sin(2 * np.pi * 50.0 * time - 0.6) + 0.05 * random.standard_normal(1300)
    both = np.stack([voltage, current])
    kinds = {"float64": both, "float32": both.astype(np.float32), "int16": both * [[90], [900]]}
    for name, values in kinds.items():
        values = values.astype(name)
        save(f"signal_{name}", values)
        exact = values.astype(np.float64)
        save(f"signal_{name}.features", features(exact[0], exact[1], 128))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    recordings()
    resampled()
    spectrograms()
    signals()
