//! A stub for builds without tokenizers.

/// The cache of the stub.
#[derive(Debug, Default)]
pub(super) struct Cache;

/// A tokenizer that cannot be created.
#[derive(Debug)]
pub(super) enum Tokenizer {}

impl Tokenizer {
    /// Returns an error that names the required build feature.
    pub(super) fn parse(_bytes: &[u8]) -> Result<Self, String> {
        Err("this program was built without tokenizers: build it with `--features text`".to_owned())
    }

    pub(super) fn largest(&self) -> u32 {
        match *self {}
    }

    pub(super) fn encode(
        &self,
        _text: &str,
        _special_tokens: bool,
        _cache: &mut Cache,
        _to: &mut Vec<i32>,
    ) -> Result<(), String> {
        match *self {}
    }
}
