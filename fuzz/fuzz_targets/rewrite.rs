//! A rewritten JPEG has the same coefficients and pixels.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::lossless::rewrite(data));
