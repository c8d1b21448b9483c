//! The index of a GPU, and its text form.

use std::fmt;
use std::str::FromStr;

/// The index of a GPU among those that are visible to this process; as text `cuda` or `cuda:INDEX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GpuIndex(pub u32);

/// The text does not name a GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{got:?} is not a GPU: expected {}", GpuIndex::EXPECTED)]
pub struct NotAGpu {
    /// The text.
    pub got: String,
}

impl GpuIndex {
    /// The expected form, for error messages.
    pub const EXPECTED: &str = "\"cuda\" or \"cuda:INDEX\", such as \"cuda:0\"";
}

impl FromStr for GpuIndex {
    type Err = NotAGpu;

    fn from_str(text: &str) -> Result<Self, NotAGpu> {
        let index = match text.strip_prefix("cuda") {
            Some("") => Some(0),
            // No sign, which a number may have.
            Some(rest) => rest
                .strip_prefix(':')
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|digits| digits.parse::<u16>().ok().map(u32::from)),
            None => None,
        };
        index.map(Self).ok_or_else(|| NotAGpu { got: text.to_owned() })
    }
}

impl fmt::Display for GpuIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::GpuIndex;

    #[test]
    fn a_gpu_is_named_as_in_pytorch() {
        assert_eq!("cuda".parse(), Ok(GpuIndex(0)));
        assert_eq!("cuda:3".parse::<GpuIndex>().unwrap().to_string(), "cuda:3");
        for wrong in ["", "cuda:", "cuda:x", "cuda:-1", "cuda:+1", "cuda:99999", "tpu", "cuda0"] {
            assert_eq!(wrong.parse::<GpuIndex>().unwrap_err().got, wrong);
        }
    }
}
