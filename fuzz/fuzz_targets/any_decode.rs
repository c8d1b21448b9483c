//! A file of any format is decoded to the size in its header, or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::pixels::any_decode(data));
