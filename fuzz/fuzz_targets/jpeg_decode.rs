//! A JPEG is decoded or refused, and its pixels are libjpeg's.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::jpeg_decode(data));
