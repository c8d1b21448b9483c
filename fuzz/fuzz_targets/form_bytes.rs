//! Bytes that may be a coefficient form give a picture or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::stored::form_bytes(data));
