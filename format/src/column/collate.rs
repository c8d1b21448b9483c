//! How pictures of different sizes are combined into a batch.

use crate::recipe::{Dtype, SampleType};
use std::fmt;

/// Largest side in pixels of `max_size`, and the largest `multiple_of`.
pub const COLLATE_SIDE_MAX: u32 = 1 << 16;

/// How pictures and their masks are combined into columns of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Collate {
    /// A tensor without padding, which needs a recipe with a fixed output shape.
    #[default]
    Stack,
    /// A tensor that is padded below and to the right to the largest height and the largest width
    /// of the batch.
    Pad(Pad),
    /// The values of all pictures one after another, with offsets and shapes.
    List(List),
}

/// Options of [`Collate::Pad`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pad {
    /// Height and width of a batch are rounded up to a multiple of this, at least 1.
    pub multiple_of: u32,
    /// Value of the elements beyond a picture. Masks are padded with their own `fill`.
    pub fill: f64,
    /// Height and width of the pictures for which memory is reserved. `None`: the largest size that
    /// the recipe can produce.
    pub max_size: Option<(u32, u32)>,
}

impl Default for Pad {
    fn default() -> Self {
        Self { multiple_of: 1, fill: 0.0, max_size: None }
    }
}

/// Options of [`Collate::List`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct List {
    /// As [`Pad::max_size`].
    pub max_size: Option<(u32, u32)>,
}

/// Options of `collate` that are invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CollateError {
    /// An unknown mode.
    #[error("`collate` is {got:?}")]
    Mode {
        /// The given value.
        got: String,
    },
    /// An option that belongs to another mode.
    #[error("`{option}` of `collate` is set, but the mode is \"{mode}\"")]
    Option {
        /// Its name.
        option: &'static str,
        /// The mode.
        mode: &'static str,
    },
    /// A number outside of its range.
    #[error("`{option}` of `collate` is {got}")]
    Range {
        /// Its name.
        option: &'static str,
        /// The given value.
        got: u64,
    },
    /// A fill that the pictures cannot hold.
    #[error("`fill` of `collate` is {fill}, but the recipe gives pictures of {dtype}")]
    Fill {
        /// The given value.
        fill: f64,
        /// Element type of the pictures.
        dtype: &'static str,
    },
}

impl CollateError {
    /// The option that the error concerns.
    pub fn option(&self) -> &'static str {
        match self {
            Self::Mode { .. } => "mode",
            Self::Option { option, .. } | Self::Range { option, .. } => option,
            Self::Fill { .. } => "fill",
        }
    }

    /// The values that the option accepts.
    pub fn takes(&self) -> String {
        match self {
            Self::Mode { .. } => {
                format!("one of {}", Collate::MODES.map(|mode| format!("{mode:?}")).join(", "))
            }
            Self::Option { option: "max_size", .. } => {
                "remove it, or set the mode to \"pad\" or \"list\"".to_owned()
            }
            Self::Option { .. } => "remove it, or set the mode to \"pad\"".to_owned(),
            Self::Range { .. } => format!("a whole number from 1 to {COLLATE_SIDE_MAX}"),
            Self::Fill { .. } => "a number that this type can represent".to_owned(),
        }
    }
}

impl meetpoint_diagnose::Diagnose for CollateError {
    fn cause(&self) -> &'static str {
        "collate"
    }

    fn remedy(&self) -> Option<meetpoint_diagnose::Remedy> {
        let instruction = match self {
            Self::Option { .. } => self.takes(),
            Self::Mode { .. } | Self::Range { .. } | Self::Fill { .. } => {
                format!("set it to {}", self.takes())
            }
        };
        Some(instruction.into())
    }
}

impl Collate {
    /// The names of the modes in job files and in Python.
    pub const MODES: [&'static str; 3] = ["stack", "pad", "list"];

    /// From the name of a mode and options, each of which may be missing.
    pub fn read(
        mode: &str,
        multiple_of: Option<u64>,
        fill: Option<f64>,
        max_size: Option<[u64; 2]>,
    ) -> Result<Self, CollateError> {
        let side = |option: &'static str, got: u64| match u32::try_from(got) {
            Ok(side) if (1..=COLLATE_SIDE_MAX).contains(&side) => Ok(side),
            _ => Err(CollateError::Range { option, got }),
        };
        let sides = |[height, width]: [u64; 2]| {
            Ok::<_, CollateError>((side("max_size", height)?, side("max_size", width)?))
        };
        let max_size = max_size.map(sides).transpose()?;
        let multiple = multiple_of.map(|got| side("multiple_of", got)).transpose()?;
        let only_pad = |mode: &'static str| match (multiple, fill) {
            (Some(_), _) => Err(CollateError::Option { option: "multiple_of", mode }),
            (None, Some(_)) => Err(CollateError::Option { option: "fill", mode }),
            (None, None) => Ok(()),
        };
        match mode {
            "stack" => {
                only_pad("stack")?;
                match max_size {
                    Some(_) => Err(CollateError::Option { option: "max_size", mode: "stack" }),
                    None => Ok(Self::Stack),
                }
            }
            "pad" => {
                let default = Pad::default();
                let multiple_of = multiple.unwrap_or(default.multiple_of);
                let fill = fill.unwrap_or(default.fill);
                Ok(Self::Pad(Pad { multiple_of, fill, max_size }))
            }
            "list" => {
                only_pad("list")?;
                Ok(Self::List(List { max_size }))
            }
            other => Err(CollateError::Mode { got: other.to_owned() }),
        }
    }

    /// Name of the mode.
    pub fn mode(&self) -> &'static str {
        match self {
            Self::Stack => Self::MODES[0],
            Self::Pad(_) => Self::MODES[1],
            Self::List(_) => Self::MODES[2],
        }
    }

    /// Whether pictures may have different sizes.
    pub fn takes_sizes(&self) -> bool {
        match self {
            Self::Stack => false,
            Self::Pad(_) | Self::List(_) => true,
        }
    }

    /// The size for which memory is reserved, if one is given.
    pub fn max_size(&self) -> Option<(u32, u32)> {
        match self {
            Self::Stack => None,
            Self::Pad(Pad { max_size, .. }) | Self::List(List { max_size }) => *max_size,
        }
    }

    /// A size with each side rounded up to the size of a batch.
    pub fn rounded(&self, (height, width): (u32, u32)) -> (u32, u32) {
        match self {
            Self::Stack | Self::List(_) => (height, width),
            Self::Pad(Pad { multiple_of, .. }) => {
                let up = |side: u32| side.checked_next_multiple_of(*multiple_of);
                (up(height).unwrap_or(u32::MAX), up(width).unwrap_or(u32::MAX))
            }
        }
    }

    /// Checks that pictures of a type can be padded with the fill.
    pub fn check(&self, pictures: SampleType) -> Result<(), CollateError> {
        let Self::Pad(Pad { fill, .. }) = *self else { return Ok(()) };
        let whole = |most: u16| fill.fract() == 0.0 && (0.0..=f64::from(most)).contains(&fill);
        let fits = match pictures.dtype {
            Dtype::Uint8 => whole(u8::MAX.into()),
            Dtype::Uint16 => whole(u16::MAX),
            Dtype::Int32 => fill.fract() == 0.0 && fill.abs() <= f64::from(i32::MAX),
            Dtype::Float16 => fill.abs() <= 65504.0,
            Dtype::Float32 => fill.abs() <= f64::from(f32::MAX),
        };
        let dtype = pictures.dtype.name();
        if fits { Ok(()) } else { Err(CollateError::Fill { fill, dtype }) }
    }
}

impl fmt::Display for Collate {
    /// Mode and options as in a job file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |f: &mut fmt::Formatter<'_>, size: Option<(u32, u32)>| match size {
            Some((height, width)) => write!(f, ", max_size = [{height}, {width}]"),
            None => Ok(()),
        };
        write!(f, "{}", self.mode())?;
        match self {
            Self::Stack => Ok(()),
            Self::Pad(Pad { multiple_of, fill, max_size }) => {
                write!(f, ", multiple_of = {multiple_of}, fill = {fill}")?;
                size(f, *max_size)
            }
            Self::List(List { max_size }) => size(f, *max_size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_those_of_another_mode_are_refused() {
        assert_eq!(Collate::read("stack", None, None, None), Ok(Collate::Stack));
        assert_eq!(Collate::read("pad", None, None, None), Ok(Collate::Pad(Pad::default())));
        let pad = Pad { multiple_of: 32, fill: 114.0, max_size: Some((800, 1333)) };
        let read = Collate::read("pad", Some(32), Some(114.0), Some([800, 1333]));
        assert_eq!(read, Ok(Collate::Pad(pad)));
        assert_eq!(
            Collate::Pad(pad).to_string(),
            "pad, multiple_of = 32, fill = 114, max_size = [800, 1333]"
        );
        let option = |read: Result<Collate, CollateError>| read.unwrap_err().option();
        assert_eq!(option(Collate::read("list", Some(32), None, None)), "multiple_of");
        assert_eq!(option(Collate::read("list", None, Some(1.0), None)), "fill");
        assert_eq!(option(Collate::read("stack", None, None, Some([1, 1]))), "max_size");
        assert_eq!(option(Collate::read("pad", Some(0), None, None)), "multiple_of");
        assert_eq!(option(Collate::read("pad", None, None, Some([0, 9]))), "max_size");
        assert_eq!(option(Collate::read("bucket", None, None, None)), "mode");
    }

    #[test]
    fn sides_are_rounded_up_to_the_multiple() {
        let pad = |multiple_of| Collate::Pad(Pad { multiple_of, ..Pad::default() });
        assert_eq!(pad(1).rounded((7, 9)), (7, 9));
        assert_eq!(pad(32).rounded((64, 65)), (64, 96));
        assert_eq!(Collate::Stack.rounded((7, 9)), (7, 9));
    }
}
