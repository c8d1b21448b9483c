//! Decodes WAV, FLAC and MP3 files.

use super::resample::{self, Resampler};
use crate::series::{Pause, Series, SeriesDecoder, SeriesShape, SeriesSource};
use crate::{Cpu, Error, contain_panic};
use meetpoint_format::recipe::{DecodeAudio, LENGTH_MAX, PIXELS_MAX};
use std::io::Cursor;
use symphonia::core::audio::{Audio, GenericAudioBufferRef};
use symphonia::core::codecs::audio::well_known::CODEC_ID_PCM_S16LE;
use symphonia::core::codecs::audio::{AudioDecoder as Codec, AudioDecoderOptions};
use symphonia::core::errors::Error as Problem;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;

/// Packets decoded between two calls of `pause`.
const PACKETS: usize = 16;

/// The format of an encoded recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AudioFormat {
    Wav,
    Flac,
    Mp3,
}

impl AudioFormat {
    /// The format identified by the first bytes.
    pub(crate) fn of(encoded: &[u8]) -> Option<Self> {
        match encoded {
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some(Self::Wav),
            [b'f', b'L', b'a', b'C', ..] => Some(Self::Flac),
            [b'I', b'D', b'3', ..] => Some(Self::Mp3),
            // A synchronisation word, of layer III.
            [0xff, second, ..] if second & 0xe6 == 0xe2 => Some(Self::Mp3),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Wav => "WAV",
            Self::Flac => "FLAC",
            Self::Mp3 => "MP3",
        }
    }
}

/// The operation `decode_audio`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AudioDecoder(pub(crate) DecodeAudio);

/// An opened file.
struct Opened<'a> {
    format: AudioFormat,
    reader: Box<dyn FormatReader + 'a>,
    codec: Box<dyn Codec>,
    /// Whether its packets are interleaved 16-bit integers in little-endian order.
    is_pcm16: bool,
    track: u32,
    sample_rate: u32,
    channels: usize,
    /// Number of samples per channel, if the header contains it.
    length: Option<u64>,
}

fn damaged(format: AudioFormat, reason: impl Into<String>) -> Error {
    Error::DecodeSeries { format: format.name(), reason: reason.into() }
}

fn failed(format: AudioFormat) -> impl Fn(Problem) -> Error {
    move |problem| match problem {
        Problem::IoError(_) => damaged(format, "the file ends in the middle of its data"),
        other => damaged(format, other.to_string()),
    }
}

impl<'a> Opened<'a> {
    fn new(encoded: &'a [u8]) -> Result<Self, Error> {
        let format = AudioFormat::of(encoded).ok_or(Error::UnknownAudio)?;
        let failed = failed(format);
        let source = Cursor::new(encoded);
        let options = MediaSourceStreamOptions::default();
        let stream = MediaSourceStream::new(Box::new(source), options);
        let (options, metadata) = (FormatOptions::default(), MetadataOptions::default());
        let probe = symphonia::default::get_probe();
        let reader = probe.probe(&Hint::new(), stream, options, metadata).map_err(&failed)?;
        let track = reader.default_track(TrackType::Audio);
        let track = track.ok_or_else(|| damaged(format, "it holds no sound"))?;
        let parameters = track.codec_params.as_ref().and_then(|parameters| parameters.audio());
        let parameters = parameters.ok_or_else(|| damaged(format, "it names no codec"))?;
        let rate = parameters.sample_rate.unwrap_or(0);
        if !(1..=DecodeAudio::SAMPLE_RATE_MAX).contains(&rate) {
            let most = DecodeAudio::SAMPLE_RATE_MAX;
            return Err(damaged(format, format!("a sample rate of {rate}, the limit is {most}")));
        }
        let channels = parameters.channels.as_ref().map_or(0, |channels| channels.count());
        if channels == 0 {
            return Err(damaged(format, "it has no channels"));
        }
        let codecs = symphonia::default::get_codecs();
        let options = AudioDecoderOptions::default();
        let codec = codecs.make_audio_decoder(parameters, &options).map_err(&failed)?;
        let is_pcm16 = parameters.codec == CODEC_ID_PCM_S16LE;
        let length = match format {
            AudioFormat::Wav | AudioFormat::Flac => track.num_frames.filter(|count| *count > 0),
            // The length in its tags may be an estimate.
            AudioFormat::Mp3 => None,
        };
        let track = track.id;
        Ok(Self { format, reader, codec, is_pcm16, track, sample_rate: rate, channels, length })
    }

    /// The next packet of the track.
    fn packet(&mut self) -> Result<Option<Packet>, Error> {
        loop {
            match self.reader.next_packet().map_err(failed(self.format))? {
                Some(packet) if packet.track_id == self.track => return Ok(Some(packet)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }
}

impl SeriesDecoder for AudioDecoder {
    fn sample_rate(&self) -> Option<u32> {
        Some(self.0.sample_rate)
    }

    fn measure(&self, encoded: &[u8]) -> Result<(SeriesShape, u64), Error> {
        contained(encoded, || self.measure_opened(encoded))
    }

    fn start(&self, cpu: Cpu) -> Box<dyn SeriesSource> {
        Box::new(AudioSource { decoder: *self, cpu, resampler: None })
    }
}

/// The operation, with the filter from the sample rate of the last file.
#[derive(Debug)]
struct AudioSource {
    decoder: AudioDecoder,
    cpu: Cpu,
    resampler: Option<Resampler>,
}

impl SeriesSource for AudioSource {
    fn decode(&mut self, encoded: &[u8], to: &mut Series, pause: Pause<'_>) -> Result<(), Error> {
        contained(encoded, || {
            let (sample_rate, channels) = self.decoder.decode_opened(encoded, pause)?;
            self.resample(sample_rate, &channels, to, pause)
        })
    }
}

/// Converts a panic of the decoder to an error, since damaged files cause it.
fn contained<T>(encoded: &[u8], run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    contain_panic(run).unwrap_or_else(|panic| {
        let format = AudioFormat::of(encoded).ok_or(Error::UnknownAudio)?;
        Err(damaged(format, format!("its decoder fails: {}", panic.message)))
    })
}

impl AudioDecoder {
    fn measure_opened(&self, encoded: &[u8]) -> Result<(SeriesShape, u64), Error> {
        let mut opened = Opened::new(encoded)?;
        let length = match (opened.length, opened.format) {
            // Channels that the file lacks are not decoded.
            (length, AudioFormat::Wav) => length.unwrap_or(u64::MAX).min(encoded.len() as u64),
            (Some(length), AudioFormat::Flac | AudioFormat::Mp3) => length,
            (None, AudioFormat::Mp3) => {
                let mut length = 0;
                while let Ok(Some(packet)) = opened.packet() {
                    length += packet.dur.get();
                }
                length
            }
            (None, AudioFormat::Flac) => u64::from(LENGTH_MAX),
        };
        let length = length.min(u64::from(LENGTH_MAX));
        let channels = self.0.num_channels as usize;
        let (from, to) = (opened.sample_rate, self.0.sample_rate);
        let result = match from == to {
            true => length,
            false => resample::length(length, from, to).min(PIXELS_MAX),
        };
        let result = usize::try_from(result).expect("at most PIXELS_MAX");
        let besides = match from == to {
            true => 0,
            // The channels before resampling, and one of them with its padding.
            false => 4 * (channels as u64 + 1) * length + Resampler::bytes(from, to),
        };
        Ok((SeriesShape { channels, rows: 1, length: result }, besides))
    }

    fn decode_opened(
        &self,
        encoded: &[u8],
        pause: Pause<'_>,
    ) -> Result<(u32, Vec<Vec<f32>>), Error> {
        let mut opened = Opened::new(encoded)?;
        let wanted = self.0.num_channels as usize;
        let found = opened.channels;
        if wanted != 1 && found != 1 && found != wanted {
            return Err(Error::Channels { found, wanted });
        }
        // A WAV file has at most as many samples as bytes.
        let expected = match opened.format {
            AudioFormat::Wav => {
                let length = opened.length.unwrap_or(0).min(u64::from(LENGTH_MAX));
                length.min(encoded.len() as u64)
            }
            AudioFormat::Flac | AudioFormat::Mp3 => 0,
        };
        let expected = usize::try_from(expected).expect("at most the length of a slice");
        let count = if wanted == found { found } else { 1 };
        let mut channels: Vec<Vec<f32>> =
            (0..count).map(|_| Vec::with_capacity(expected)).collect();
        let mut planes: Vec<Vec<f32>> = Vec::new();
        let mut count = 0;
        while let Some(packet) = opened.packet()? {
            if count % PACKETS == 0 {
                pause()?;
            }
            count += 1;
            if opened.is_pcm16 && channels.len() == found && packet.data.len() % (2 * found) == 0 {
                let frames = packet.data.len() / (2 * found);
                check_length(
                    opened.format,
                    opened.length,
                    channels[0].len() + frames,
                    channels.len(),
                )?;
                pcm16(&packet.data, &mut channels);
                continue;
            }
            let decoded = opened.codec.decode(&packet).map_err(failed(opened.format))?;
            if decoded.spec().rate() != opened.sample_rate || decoded.num_planes() != found {
                let reason = "its sample rate or number of channels changes";
                return Err(damaged(opened.format, reason));
            }
            check_length(
                opened.format,
                opened.length,
                channels[0].len() + decoded.frames(),
                channels.len(),
            )?;
            if let GenericAudioBufferRef::F32(decoded) = &decoded
                && channels.len() == found
            {
                for (index, channel) in channels.iter_mut().enumerate() {
                    channel.extend_from_slice(decoded.plane(index).unwrap_or_default());
                }
                continue;
            }
            decoded.copy_to_vecs_planar(&mut planes);
            match channels.len() == found {
                true => {
                    for (channel, plane) in channels.iter_mut().zip(&planes) {
                        channel.extend_from_slice(plane);
                    }
                }
                false => mix(&planes, &mut channels[0]),
            }
        }
        let length = channels[0].len() as u64;
        if length == 0 {
            return Err(Error::EmptySeries);
        }
        if let Some(header) = opened.length.filter(|header| *header != length) {
            let reason =
                format!("it ends after {length} of the {header} samples stated in its header");
            return Err(damaged(opened.format, reason));
        }
        Ok((opened.sample_rate, channels))
    }
}

impl AudioSource {
    /// Resamples channels to the sample rate of the result, repeats a single one, and joins them.
    fn resample(
        &mut self,
        from: u32,
        channels: &[Vec<f32>],
        to: &mut Series,
        pause: Pause<'_>,
    ) -> Result<(), Error> {
        let length = channels[0].len();
        let DecodeAudio { sample_rate: rate, num_channels } = self.decoder.0;
        let wanted = num_channels as usize;
        let result = match from == rate {
            true => length as u64,
            false => resample::length(length as u64, from, rate),
        };
        if result * wanted as u64 > PIXELS_MAX {
            return Err(Error::LongSeries { limit: PIXELS_MAX });
        }
        let result = usize::try_from(result).expect("at most PIXELS_MAX");
        to.shape = SeriesShape { channels: wanted, rows: 1, length: result };
        to.values.clear();
        match from == rate {
            true => channels.iter().for_each(|channel| to.values.extend_from_slice(channel)),
            false => {
                let cpu = self.cpu;
                let resampler = Resampler::between(from, rate, &mut self.resampler);
                for channel in channels {
                    resampler.run(channel, &mut to.values, cpu, pause)?;
                }
            }
        }
        for _ in channels.len()..wanted {
            to.values.extend_from_within(..result);
        }
        Ok(())
    }
}

/// Refuses more samples per channel than the header states or a result may have.
fn check_length(
    format: AudioFormat,
    limit: Option<u64>,
    length: usize,
    channels: usize,
) -> Result<(), Error> {
    let (length, limit) = (length as u64, limit.unwrap_or(u64::MAX));
    if length * channels as u64 > PIXELS_MAX || length > u64::from(LENGTH_MAX) {
        return Err(Error::LongSeries { limit: PIXELS_MAX });
    }
    if length > limit {
        let reason = format!("it continues after the {limit} samples stated in its header");
        return Err(damaged(format, reason));
    }
    Ok(())
}

/// Appends interleaved 16-bit integers to their channels, as fractions of 32768. The codec of the
/// library gives the same values, but converts one value at a time.
fn pcm16(data: &[u8], channels: &mut [Vec<f32>]) {
    let (values, _) = data.as_chunks::<2>();
    let fraction = |value: &[u8; 2]| f32::from(i16::from_le_bytes(*value)) / 32768.0;
    if let [channel] = channels {
        channel.extend(values.iter().map(fraction));
        return;
    }
    let count = channels.len();
    for (index, channel) in channels.iter_mut().enumerate() {
        channel.extend(values.iter().skip(index).step_by(count).map(fraction));
    }
}

/// Appends the mean of all channels: their sum in order, divided by their number.
fn mix(planes: &[Vec<f32>], to: &mut Vec<f32>) {
    let (Some((first, others)), begin) = (planes.split_first(), to.len()) else { return };
    to.extend_from_slice(first);
    for plane in others {
        for (sum, value) in to[begin..].iter_mut().zip(plane) {
            *sum += value;
        }
    }
    let count = planes.len() as f32;
    to[begin..].iter_mut().for_each(|sum| *sum /= count);
}
