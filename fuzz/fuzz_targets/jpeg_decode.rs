//! A JPEG is decoded or refused, the same with all instruction sets, and its pixels are libjpeg's.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::pixels::jpeg_decode(data));
