//! A tar file is unpacked to a folder, and nothing is written outside of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::containers::tar_to_folder(data));
