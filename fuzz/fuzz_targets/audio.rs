//! A WAV, FLAC or MP3 file is decoded, mixed and resampled, or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::series::audio(data));
