//! Damaged recordings, interrupts, memory, and recipes resumed in the middle.

use crate::{Cpu, Error, Interrupt, SampleId, SamplePreparer};
use meetpoint_format::recipe::Recipe;

const ID: SampleId = SampleId { seed: 7, epoch: 3, sample: 41 };

fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/series");
    std::fs::read(format!("{folder}/{name}")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn recipe(operations: &[&str]) -> Recipe {
    let tables = operations.iter().map(|keys| {
        let (name, rest) = keys.split_once(' ').unwrap_or((keys, ""));
        format!("[[operation]]\nname = \"{name}\"\n{}\n", rest.replace(';', "\n"))
    });
    Recipe::from_toml(&tables.collect::<String>()).unwrap_or_else(|error| panic!("{error}"))
}

const OPERATIONS: [&str; 6] = [
    "decode_audio sample_rate = 12000;num_channels = 1",
    "random_time_crop length = 4000",
    "mel_spectrogram n_fft = 240;hop_length = 120;n_mels = 40",
    "log",
    "normalize mean = [-4.0];std = [4.0]",
    "to_dtype dtype = \"float16\"",
];

const FILES: [&str; 5] = ["mono16.wav", "stereo24.wav", "stereo16.flac", "mono.mp3", "stereo.mp3"];

#[test]
fn a_resumed_recipe_has_the_bits_of_the_whole() {
    for name in FILES {
        let file = file(name);
        let mut whole = SamplePreparer::new(&recipe(&OPERATIONS), Cpu::detect());
        let expected = whole.prepare_tensor((&file[..]).into(), ID).unwrap();
        assert_eq!(expected.spec.axes(), [1, 40, 34]);
        for first in 1..=OPERATIONS.len() {
            let beginning = recipe(&OPERATIONS[..first]);
            let mut beginning = SamplePreparer::new(&beginning, Cpu::detect());
            let stored = beginning.prepare_tensor((&file[..]).into(), ID).unwrap();
            let got = whole.resume(first, (&stored.spec, &stored.data), ID).unwrap();
            assert!(got == expected, "{name} resumed at {first}");
            let mut out = vec![0; expected.data.len()];
            let into = (&mut out[..], &mut (|| ()) as &mut dyn FnMut());
            let from = (&stored.spec, &stored.data[..]);
            whole.resume_with(first, from, &[], ID, into).unwrap();
            assert!(out == expected.data, "{name} resumed at {first} into memory");
        }
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    for name in FILES {
        let file = file(name);
        let prepare = |cpu| {
            let mut preparer = SamplePreparer::new(&recipe(&OPERATIONS[..4]), cpu);
            preparer.prepare_tensor((&file[..]).into(), ID).unwrap()
        };
        let expected = prepare(Cpu::Portable);
        for cpu in Cpu::ALL {
            match cpu.is_available() {
                true => assert!(prepare(cpu) == expected, "{name} {cpu:?}"),
                false => eprintln!("skipped: this machine lacks {cpu:?}"),
            }
        }
    }
}

/// A WAV file at 8 kHz with this data. Tag 1 denotes integers, 3 floats.
fn wav(tag: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    let block = channels * bits / 8;
    let (rate, byte_rate) = (8_000_u32.to_le_bytes(), (8_000 * u32::from(block)).to_le_bytes());
    let [tag, channels, block, bits] = [tag, channels, block, bits].map(u16::to_le_bytes);
    let format = [&tag[..], &channels, &rate, &byte_rate, &block, &bits].concat();
    let chunks = [b"fmt ", &length(format.len())[..], &format, b"data", &length(data.len()), data];
    let body = [&b"WAVE"[..], &chunks.concat()].concat();
    [b"RIFF", &length(body.len())[..], &body].concat()
}

/// A mono WAV file of 32-bit floats.
fn float_wav(samples: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    wav(3, 1, 32, &data)
}

#[test]
fn integers_of_16_bits_are_fractions_of_32768_in_their_channels() {
    let of = |at: usize| (at as i32 * 7919 % 65_536 - 32_768) as i16;
    for channels in 1..=3_u16 {
        let count = usize::from(channels);
        // Several packets, the last of which is not full.
        let data: Vec<u8> = (0..count * 5_003).flat_map(|at| of(at).to_le_bytes()).collect();
        let file = wav(1, channels, 16, &data);
        let decode = format!("decode_audio sample_rate = 8000;num_channels = {channels}");
        let mut preparer = SamplePreparer::new(&recipe(&[&decode]), Cpu::detect());
        let found = preparer.prepare_tensor((&file[..]).into(), ID).unwrap().data;
        let expected: Vec<u8> = (0..count)
            .flat_map(|channel| (0..5_003).map(move |frame| of(frame * count + channel)))
            .flat_map(|value| (f32::from(value) / 32_768.0).to_le_bytes())
            .collect();
        assert!(found == expected, "{channels} channels");
    }
}

#[test]
fn values_that_are_not_numbers_have_the_same_bits_with_every_instruction_set() {
    let bits = [0x7fc0_0001, 0xffc1_2345, 0x7f80_0000, 0xff80_0000, 0x7f7f_ffff, 0xff7f_ffff];
    let samples: Vec<f32> = (0..1_600_usize)
        .map(|at| if at % 7 == 3 { f32::from_bits(bits[at / 7 % 6]) } else { at as f32 / 1e4 })
        .collect();
    let file = float_wav(&samples);
    for count in 1..=2 {
        let operations =
            ["decode_audio sample_rate = 16000", "spectrogram n_fft = 256;hop_length = 128"];
        let recipe = recipe(&operations[..count]);
        let prepare = |cpu| {
            let mut preparer = SamplePreparer::new(&recipe, cpu);
            preparer.prepare_tensor((&file[..]).into(), ID).unwrap()
        };
        let expected = prepare(Cpu::Portable);
        let values = expected.data.as_chunks::<4>().0.iter().copied().map(f32::from_le_bytes);
        let not_numbers: Vec<f32> = values.filter(|value| value.is_nan()).collect();
        assert!(!not_numbers.is_empty());
        assert!(not_numbers.iter().all(|value| value.to_bits() == f32::NAN.to_bits()));
        for cpu in Cpu::available() {
            assert!(prepare(cpu) == expected, "{cpu:?}");
        }
    }
}

#[test]
fn random_crops_depend_on_seed_epoch_and_sample_alone() {
    let crop = recipe(&[OPERATIONS[0], "random_time_crop length = 1000"]);
    let file = file("mono16.wav");
    let prepare = |id| {
        let mut preparer = SamplePreparer::new(&crop, Cpu::detect());
        preparer.prepare_tensor((&file[..]).into(), id).unwrap().data
    };
    assert_eq!(prepare(ID), prepare(ID));
    assert_ne!(prepare(ID), prepare(SampleId { epoch: 4, ..ID }));
    assert_ne!(prepare(ID), prepare(SampleId { sample: 42, ..ID }));
    let whole = recipe(&OPERATIONS[..1]);
    let mut whole = SamplePreparer::new(&whole, Cpu::detect());
    let whole = whole.prepare_tensor((&file[..]).into(), ID).unwrap().data;
    let crop = prepare(ID);
    assert!(whole.windows(crop.len()).step_by(4).any(|part| part == crop));
}

#[test]
fn what_is_shorter_is_padded_at_its_end() {
    let file = file("mono16.wav");
    let exact = recipe(&["decode_audio sample_rate = 16000"]);
    let exact =
        SamplePreparer::new(&exact, Cpu::detect()).prepare_tensor((&file[..]).into(), ID).unwrap();
    for name in ["fix_length", "random_time_crop"] {
        let text = format!("{name} length = 8002;value = 0.5");
        let padded = recipe(&["decode_audio sample_rate = 16000", &text]);
        let mut preparer = SamplePreparer::new(&padded, Cpu::detect());
        let padded = preparer.prepare_tensor((&file[..]).into(), ID).unwrap().data;
        assert_eq!(padded[..4 * 8000], exact.data);
        assert_eq!(padded[4 * 8000..], [0.5_f32.to_le_bytes(), 0.5_f32.to_le_bytes()].concat());
    }
}

#[test]
fn a_recording_cut_short_anywhere_is_an_error_and_never_a_panic() {
    let mut preparer = SamplePreparer::new(&recipe(&OPERATIONS), Cpu::detect());
    for name in FILES {
        let file = file(name);
        let is_mp3 = name.ends_with("mp3");
        for end in (0..file.len()).step_by(97) {
            let part = &file[..end];
            let prepared = preparer.prepare_tensor(part.into(), ID);
            // Frames of an MP3 are independent, so a file truncated between two frames is a valid,
            // shorter file.
            assert!(is_mp3 || prepared.is_err(), "{name} of {end} bytes");
            let _ = preparer.memory_bytes(part, ID);
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let mut preparer = SamplePreparer::new(&recipe(&OPERATIONS), Cpu::detect());
    for name in FILES {
        let file = file(name);
        // Every byte of the headers, and some of the rest.
        for at in (0..128.min(file.len())).chain((128..file.len()).step_by(401)) {
            for flip in [0xff, 0x01, 0x80] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                let _ = preparer.prepare_tensor((&damaged[..]).into(), ID);
                let _ = preparer.memory_bytes(&damaged, ID);
            }
        }
    }
}

#[test]
fn a_header_that_claims_4_gib_takes_no_such_memory() {
    let sound = file("mono16.wav");
    let mut preparer = SamplePreparer::new(&recipe(&OPERATIONS), Cpu::detect());
    let mut claim = |size: u32| {
        let mut file = sound.clone();
        let data = file.windows(4).position(|bytes| bytes == b"data").unwrap();
        file[data + 4..data + 8].copy_from_slice(&size.to_le_bytes());
        file[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        let bytes = preparer.memory_bytes(&file, ID).unwrap();
        assert!(bytes < 1 << 20, "{bytes}");
        preparer.prepare_tensor((&file[..]).into(), ID)
    };
    // The largest number denotes an unknown length.
    for size in [u32::MAX - 255, u32::MAX] {
        let prepared = claim(size);
        assert!(matches!(prepared, Err(Error::DecodeSeries { format: "WAV", .. })), "{size}");
    }
}

#[test]
fn bytes_of_no_audio_format_are_an_error() {
    let mut preparer = SamplePreparer::new(&recipe(&OPERATIONS), Cpu::detect());
    let mut prepare = |bytes: &[u8]| preparer.prepare_tensor(bytes.into(), ID).unwrap_err();
    assert_eq!(prepare(b""), Error::UnknownAudio);
    assert_eq!(prepare(b"\xff\xd8\xff\xe0 a JPEG"), Error::UnknownAudio);
    let garbage: Vec<u8> = (0..4096_u32).map(|at| (at * at * 31 / 7) as u8).collect();
    for magic in [&b"ID3\x04\0\0\0\0\0\0"[..], b"\xff\xfb\x90\0", b"fLaC", b"RIFF\0\0\0\0WAVE"] {
        let error = prepare(&[magic, &garbage].concat());
        assert!(matches!(error, Error::DecodeSeries { .. } | Error::EmptySeries), "{error:?}");
    }
}

#[test]
fn a_recording_that_is_interrupted_at_any_poll_is_not_prepared() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    for name in FILES {
        let file = file(name);
        let run = |raised_at: usize| {
            let polled = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&polled);
            let poll = move || counter.fetch_add(1, Ordering::Relaxed) >= raised_at;
            let mut preparer = SamplePreparer::new(&recipe(&OPERATIONS), Cpu::detect());
            preparer.set_interrupt(Interrupt::when(poll));
            let prepared = preparer.prepare_tensor((&file[..]).into(), ID);
            (prepared, polled.load(Ordering::Relaxed))
        };
        let (prepared, polls) = run(usize::MAX);
        prepared.unwrap();
        assert!(polls > 5, "{name}: {polls}");
        for raised_at in 0..polls {
            assert_eq!(run(raised_at).0, Err(Error::Interrupted), "{name} {raised_at}");
        }
    }
}

#[test]
fn memory_is_that_of_the_decoded_recording_and_its_results() {
    let whole = recipe(&["decode_audio sample_rate = 16000", "fix_length length = 1000000"]);
    let preparer = SamplePreparer::new(&whole, Cpu::detect());
    let bytes = preparer.memory_bytes(&file("mono16.wav"), ID).unwrap();
    assert_eq!(bytes, 4 * (8000 + 1_000_000) + 4 * 1_000_000);
}
