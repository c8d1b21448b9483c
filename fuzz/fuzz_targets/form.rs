//! The coefficient form of a JPEG restores the file and has the same pixels.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::lossless::form(data));
