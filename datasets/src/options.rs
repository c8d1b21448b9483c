//! The values of options as users write them: the same words on the command line and in Python.

pub use crate::choice::Choice;
use crate::pack::{Check, OnError};
use crate::sink::SinkKind;
use crate::source::{ContentKind, PixelStore};
use crate::{Progressive, RestartMarkers, operations::MergeOrder};
use meetpoint_format::dataset::{Codec, EntryPointSpacing, Form};
use std::ops::Range;

impl Choice for Form {
    const ALL: &'static [Self] = &[Self::Jpeg, Self::Compact, Self::Fast];

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Choice for Codec {
    const ALL: &'static [Self] = Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Choice for Progressive {
    const ALL: &'static [Self] = &[Self::Transcode, Self::Keep];

    fn name(self) -> &'static str {
        match self {
            Self::Transcode => "transcode",
            Self::Keep => "keep",
        }
    }
}

impl Choice for OnError {
    const ALL: &'static [Self] = &[Self::Fail, Self::Skip];

    fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }
}

impl Choice for Check {
    const ALL: &'static [Self] = &[Self::Decode, Self::Header];

    fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Header => "header",
        }
    }
}

impl Choice for ContentKind {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Choice for PixelStore {
    const ALL: &'static [Self] = &[Self::Auto, Self::Raw, Self::Encoded];

    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Raw => "raw",
            Self::Encoded => "encoded",
        }
    }

    fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::Auto => "Raw where a picture has at most 4096 pixels, otherwise encoded",
            Self::Raw => "Raw pixels behind the header of a PGM or PPM, which decode fastest",
            Self::Encoded => "PNG",
        })
    }
}

impl Choice for SinkKind {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::Folder => {
                "A file for each sample, under its key; further columns in metadata.jsonl"
            }
            Self::WebDataset => "Tar shards as WebDataset reads them",
            Self::Parquet => "Parquet as Hugging Face's datasets reads it",
            Self::Mds => "Shards as MosaicML's streaming reads them",
            Self::Datadings => "A msgpack file with its indexes, as Python's datadings writes it",
            Self::TfRecord => "Shards of tf.train.Example",
        })
    }
}

impl Choice for MergeOrder {
    const ALL: &'static [Self] = &[Self::Concat, Self::Interleave];

    fn name(self) -> &'static str {
        self.name()
    }
}

/// Reads the spacing of entry points: `row`, `none` or a number of MCUs.
pub fn parse_entry_points(text: &str) -> Result<Option<EntryPointSpacing>, String> {
    match text {
        "row" => Ok(Some(EntryPointSpacing::McuRow)),
        "none" => Ok(None),
        number => parse_mcus(number).map(|count| Some(EntryPointSpacing::Mcus(count))),
    }
}

/// Reads the spacing of restart markers: `row`, `none` or a number of MCUs.
pub fn parse_restart_interval(text: &str) -> Result<RestartMarkers, String> {
    match text {
        "row" => Ok(RestartMarkers::EveryMcuRow),
        "none" => Ok(RestartMarkers::Remove),
        number => parse_mcus(number).map(RestartMarkers::EveryMcus),
    }
}

fn parse_mcus(text: &str) -> Result<u16, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "expected `row`, `none` or a number of MCUs from 1 to 65535".to_owned())
}

/// Reads a range of samples: `100..200`, `..200` or `100..`.
pub fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("\"{text}\" is not a range; write 100..200, ..200 or 100..");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, absent| match text {
        "" => Ok(absent),
        text => text.parse().map_err(|_| wrong()),
    };
    let range = number(from, 0)?..number(to, u64::MAX)?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

#[cfg(test)]
mod tests {
    use super::{Choice, parse_entry_points, parse_range, parse_restart_interval};
    use crate::source::ContentKind;
    use crate::{Check, OnError, Progressive, RestartMarkers, SinkKind, operations::MergeOrder};
    use meetpoint_format::dataset::{EntryPointSpacing, Form};

    #[test]
    fn spacings_are_a_word_or_a_number_above_zero() {
        assert_eq!(parse_entry_points("row"), Ok(Some(EntryPointSpacing::McuRow)));
        assert_eq!(parse_entry_points("8"), Ok(Some(EntryPointSpacing::Mcus(8))));
        assert_eq!(parse_entry_points("none"), Ok(None));
        assert_eq!(parse_restart_interval("none"), Ok(RestartMarkers::Remove));
        assert_eq!(parse_restart_interval("65535"), Ok(RestartMarkers::EveryMcus(65535)));
        for wrong in ["0", "-1", "65536", "rows", ""] {
            assert!(parse_entry_points(wrong).is_err(), "{wrong:?}");
            assert!(parse_restart_interval(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn ranges_may_be_open_but_not_empty() {
        assert_eq!(parse_range("3..5"), Ok(3..5));
        assert_eq!(parse_range("..5"), Ok(0..5));
        assert_eq!(parse_range("3.."), Ok(3..u64::MAX));
        for wrong in ["", "3", "5..3", "3..3", "a..b", "-1..2"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_choice_is_found_by_its_name() {
        fn all<T: Choice + std::fmt::Debug>() {
            for value in T::ALL {
                assert_eq!(T::named(value.name()), Some(*value));
            }
            assert_eq!(T::named("no such name"), None);
        }
        all::<Form>();
        all::<Progressive>();
        all::<OnError>();
        all::<Check>();
        all::<ContentKind>();
        all::<SinkKind>();
        all::<MergeOrder>();
    }
}
