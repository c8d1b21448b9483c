//! Causes and remedies of errors of one sample.

use crate::{DoesNotFit, Error, FileMisfit, Misfit};
use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting};
use meetpoint_jpeg::Error as JpegError;

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::DoesNotFit(source) => source.cause(),
            Self::Mode { .. } | Self::ShortSeries { .. } | Self::Channels { .. } => {
                "recipe_does_not_fit"
            }
            Self::FileNotRead { .. } | Self::File { .. } | Self::NoVector { .. } => "recipe_file",
            Self::Target { .. } => "target",
            Self::NoBoxes => "no_boxes",
            Self::UnknownFormat
            | Self::UnknownAudio
            | Self::EmptySeries
            | Self::LongSeries { .. }
            | Self::DecodeSeries { .. }
            | Self::Characters { .. }
            | Self::LongText { .. }
            | Self::NoTokens { .. }
            | Self::Decode { .. }
            | Self::TooLarge { .. }
            | Self::Region { .. }
            | Self::OutputSize { .. }
            | Self::Jpeg(_) => "sample_not_decoded",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Interrupted => None,
            Self::DoesNotFit(source) => source.remedy(),
            Self::Mode { .. } => Some(
                Remedy::advice("change `mode` of `decode` in the recipe")
                    .or("convert the file and pack again"),
            ),
            Self::ShortSeries { .. } => Some(
                Remedy::advice("put `fix_length` before the operation")
                    .or("leave the sample out of the dataset"),
            ),
            Self::Channels { .. } => Some(
                Remedy::advice("set `num_channels` of `decode_audio` to 1")
                    .or("convert the file and pack again"),
            ),
            Self::Characters { .. } => Some(
                Remedy::advice("set `encoding` of `decode_text`, or `errors` to \"replace\"")
                    .or("leave the sample out of the dataset"),
            ),
            Self::LongText { .. } => Some(
                Remedy::advice("split the document and pack again")
                    .or("leave the sample out of the dataset"),
            ),
            Self::NoTokens { .. } => Some("give the tokenizer a token for unknown words".into()),
            Self::NoVector { .. } => Some("give `embed` a table with a row for every token".into()),
            Self::FileNotRead { .. } => {
                Some("give the recipe its files, as the loader and the program do".into())
            }
            Self::File { .. } => Some("restore the file, or name another in the recipe".into()),
            Self::UnknownAudio
            | Self::EmptySeries
            | Self::LongSeries { .. }
            | Self::DecodeSeries { .. } => Some(
                Remedy::advice("restore the file and pack again")
                    .or("leave the sample out of the dataset"),
            ),
            Self::Target { .. } => Some(
                Remedy::advice("correct the target in the recipe")
                    .or("correct the column and pack again"),
            ),
            Self::NoBoxes => Some("name a target of boxes in the recipe".into()),
            // No decoder can fill in missing data of a coefficient form.
            Self::Jpeg(JpegError::Form(_)) => {
                Some(Remedy::advice("restore the part from its source").or("pack again"))
            }
            Self::UnknownFormat
            | Self::Decode { .. }
            | Self::TooLarge { .. }
            | Self::Region { .. }
            | Self::OutputSize { .. }
            | Self::Jpeg(_) => {
                let remedy = Remedy::advice("restore the file and pack again");
                Some(remedy.or_set(Setting::DecodeOnError, Change::To("\"lenient\"".to_owned())))
            }
        }
    }
}

impl Diagnose for FileMisfit {
    fn cause(&self) -> &'static str {
        "recipe_file"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some("restore the file, or name another in the recipe".into())
    }
}

impl Diagnose for DoesNotFit {
    fn cause(&self) -> &'static str {
        "recipe_does_not_fit"
    }

    fn remedy(&self) -> Option<Remedy> {
        let Self { operation, key, .. } = self;
        Some(match self.misfit {
            Misfit::CropTooLarge { .. } => {
                let remedy = Remedy::set(Setting::PadIfNeeded, Change::On);
                remedy.or(format!("resize to a larger picture before {operation}"))
            }
            Misfit::NoPixels { .. } => {
                Remedy::advice(format!("change `{key}` of {operation} so that no side is 0"))
                    .or(format!("crop to a less narrow picture before {operation}"))
            }
            Misfit::TooLarge { .. } => {
                Remedy::advice(format!("resize to a smaller picture before {operation}"))
                    .or(format!("change its `{key}`"))
            }
        })
    }
}
