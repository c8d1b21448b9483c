//! A region of a JPEG equals that part of the whole, with and without entry points.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::pixels::jpeg_region(data));
