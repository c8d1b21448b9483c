//! A file that a recipe names is a tokenizer or a table, or is refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meetpoint_fuzz::series::recipe_file(data));
