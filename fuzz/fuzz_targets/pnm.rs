//! A binary PGM or PPM file is decoded to the size in its header, or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::series::pnm(data));
