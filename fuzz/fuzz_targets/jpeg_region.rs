//! A region of a JPEG is that part of the whole, with entry points and without.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::pixels::jpeg_region(data));
