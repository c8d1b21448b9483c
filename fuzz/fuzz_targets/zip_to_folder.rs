//! A ZIP archive becomes a folder, and nothing outside of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::containers::zip_to_folder(data));
