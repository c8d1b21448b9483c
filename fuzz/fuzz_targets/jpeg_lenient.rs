//! A damaged JPEG that is filled in has the pixels of libjpeg.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::pixels::jpeg_lenient(data));
