//! Values of keys of operations on sound, signals and text.

named!(Encoding {
    Utf8 = "utf-8",
    Utf16Le = "utf-16-le",
    Utf16Be = "utf-16-be",
    Latin1 = "latin-1",
});
named!(DecodingErrors { Strict = "strict", Replace = "replace" });
named!(Planes {
    Ids = "ids",
    IdsMask = "ids_mask",
    IdsSegmentsPositions = "ids_segments_positions",
});
named!(Packing { FirstFit = "first_fit", Concatenate = "concatenate" });
named!(PadMode { Constant = "constant", Reflect = "reflect" });
named!(MelScale { Slaney = "slaney", Htk = "htk" });
named!(MelNorm { Slaney = "slaney", None = "none" });
named!(LogBase { E = "e", Ten = "10" });

/// The character encoding of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
    /// ISO 8859-1: each byte is the character with its number.
    Latin1,
}

/// How bytes that are not valid characters are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecodingErrors {
    /// Invalid bytes are an error.
    Strict,
    /// They become U+FFFD, as by Python's `errors="replace"`.
    Replace,
}

/// The planes of a sequence of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Planes {
    /// Tokens.
    Ids,
    /// Tokens, and 1 for each of them, 0 for padding.
    IdsMask,
    /// Tokens; the number of the document in its row, from 1, 0 for padding; the number of the
    /// token in its document, from 0.
    IdsSegmentsPositions,
}

impl Planes {
    /// Number of planes.
    pub fn count(self) -> u32 {
        match self {
            Self::Ids => 1,
            Self::IdsMask => 2,
            Self::IdsSegmentsPositions => 3,
        }
    }
}

/// How the documents of a batch share its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Each document is placed in the first row that has space for all of it.
    FirstFit,
    /// Documents follow one another; one that reaches the end of a row continues in the next.
    Concatenate,
}

/// What the padding at both ends of a signal contains, with librosa's and torch's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PadMode {
    /// Zeros: librosa's default.
    Constant,
    /// The mirrored signal, without its ends: torch's default.
    Reflect,
}

/// How a frequency is converted to mel, with torchaudio's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MelScale {
    /// Linear below 1000 Hz, logarithmic above: librosa's default.
    Slaney,
    /// 2595 log10(1 + f / 700): torchaudio's default.
    Htk,
}

/// The weights of a mel band.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MelNorm {
    /// Each band has an area of 1: librosa's default.
    Slaney,
    /// Each band has a peak of 1: torchaudio's default.
    None,
}

/// The base of a logarithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogBase {
    /// Euler's number.
    E,
    /// 10.
    Ten,
}
