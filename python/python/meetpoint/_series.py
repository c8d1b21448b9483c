"""Operations on sound, spectrograms and signals: values of channels over time."""

from __future__ import annotations

from typing import Literal, Optional, Sequence, Union

from ._transform import Transform
from ._values import number, whole, wholes


class DecodeAudio(Transform):
    """Decodes a WAV, FLAC or MP3 file to float32 [channels, time].

    :param sample_rate: samples per second; files at another rate are resampled as by torchaudio.
    :param num_channels: 1: the mean of all channels.
    """

    _name = "decode_audio"

    def __init__(self, sample_rate: int, num_channels: int = 1) -> None:
        super().__init__(
            sample_rate=whole("sample_rate", sample_rate),
            num_channels=whole("num_channels", num_channels),
        )


class DecodeSignal(Transform):
    """Reads a NumPy file of shape [channels, time], or [time] with one channel, as float32.

    :param num_channels: the channels of every file.
    """

    _name = "decode_signal"

    def __init__(self, num_channels: int) -> None:
        super().__init__(num_channels=whole("num_channels", num_channels))


class Spectrogram(Transform):
    """The magnitude or power of each frequency, [channels, n_fft / 2 + 1, time].

    :param n_fft: samples of a frame, an even number without prime factors above 5.
    :param hop_length: samples from one frame to the next.
    :param win_length: samples of the Hann window; by default ``n_fft``.
    :param power: 1: magnitude, 2: power.
    :param center: whether frames are centred at multiples of ``hop_length``, with padded ends.
    :param pad_mode: ``"constant"``: zeros, as in librosa; ``"reflect"``, as in torch.
    """

    _name = "spectrogram"

    def __init__(
        self,
        n_fft: int,
        hop_length: int,
        win_length: Optional[int] = None,
        power: int = 2,
        center: bool = True,
        pad_mode: Literal["constant", "reflect"] = "constant",
    ) -> None:
        super().__init__(
            n_fft=whole("n_fft", n_fft),
            win_length=None if win_length is None else whole("win_length", win_length),
            hop_length=whole("hop_length", hop_length),
            power=whole("power", power),
            center=center,
            pad_mode=pad_mode,
        )


class MelSpectrogram(Transform):
    """The magnitude or power of mel bands, [channels, n_mels, time], as librosa defines them.

    The parameters of the frames are those of :class:`Spectrogram`.

    :param n_mels: the number of bands.
    :param f_min: the lowest frequency in Hz.
    :param f_max: the highest frequency in Hz; by default half the sample rate.
    :param mel_scale: how a frequency is converted to mel.
    :param norm: ``"slaney"``: bands have an area of 1; ``"none"``: a peak of 1.
    """

    _name = "mel_spectrogram"

    def __init__(
        self,
        n_fft: int,
        hop_length: int,
        win_length: Optional[int] = None,
        power: int = 2,
        n_mels: int = 80,
        f_min: float = 0.0,
        f_max: Optional[float] = None,
        mel_scale: Literal["slaney", "htk"] = "slaney",
        norm: Literal["slaney", "none"] = "slaney",
        center: bool = True,
        pad_mode: Literal["constant", "reflect"] = "constant",
    ) -> None:
        super().__init__(
            n_fft=whole("n_fft", n_fft),
            win_length=None if win_length is None else whole("win_length", win_length),
            hop_length=whole("hop_length", hop_length),
            power=whole("power", power),
            n_mels=whole("n_mels", n_mels),
            f_min=number("f_min", f_min),
            f_max=None if f_max is None else number("f_max", f_max),
            mel_scale=mel_scale,
            norm=norm,
            center=center,
            pad_mode=pad_mode,
        )


class Log(Transform):
    """``multiplier`` times the logarithm of every value, with a minimum of ``floor``."""

    _name = "log"

    def __init__(
        self, base: Literal["e", "10"] = "e", floor: float = 1e-10, multiplier: float = 1.0
    ) -> None:
        super().__init__(
            base=base, floor=number("floor", floor), multiplier=number("multiplier", multiplier)
        )


class PowerFeatures(Transform):
    """Active and reactive power, RMS of the current and CUSUM of each period, [4, periods].

    :param period: samples of a period of the mains. The channels are voltage and current.
    """

    _name = "power_features"

    def __init__(self, period: int) -> None:
        super().__init__(period=whole("period", period))


class SelectChannels(Transform):
    """Some of the channels, in a given order, counted from 0."""

    _name = "select_channels"

    def __init__(self, channels: Union[int, Sequence[int]]) -> None:
        super().__init__(channels=wholes("channels", channels))


class FixLength(Transform):
    """Cuts the end off, or pads it with ``value``, to ``length`` steps in time."""

    _name = "fix_length"

    def __init__(self, length: int, value: float = 0.0) -> None:
        super().__init__(length=whole("length", length), value=number("value", value))


class RandomTimeCrop(Transform):
    """A random part of ``length`` steps in time; shorter inputs are padded with ``value``."""

    _name = "random_time_crop"

    def __init__(self, length: int, value: float = 0.0) -> None:
        super().__init__(length=whole("length", length), value=number("value", value))
