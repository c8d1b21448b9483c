//! A region of a JPEG is that part of the whole.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::jpeg_region(data));
