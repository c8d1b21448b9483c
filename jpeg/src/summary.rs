//! A summary of a JPEG's frame header, for statistics without decoding.

use super::frame::{Coding, Frame};
use super::markers::Header;
use super::{form, form_of, skeleton::Skeleton};
use crate::{Cpu, Error};

/// Bits of a sample by the frame header of a JPEG file; `None` if the file is not a JPEG, or has no
/// frame header before its first scan. Only 8 bits are decoded.
pub fn precision(file: &[u8]) -> Option<u8> {
    let mut rest = file.strip_prefix(b"\xff\xd8")?;
    loop {
        // A marker may have several bytes 0xff before it.
        let begin = rest.iter().position(|byte| *byte != 0xff).filter(|begin| *begin > 0)?;
        let [marker, high, low, content @ ..] = &rest[begin..] else { return None };
        match marker {
            // DHT, JPG and DAC are between the markers of frames.
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => return content.first().copied(),
            0xda => return None,
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        rest = content.get(length.checked_sub(2)?..)?;
    }
}

/// How a JPEG is coded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JpegSummary {
    /// Whether its coefficients are coded in several passes (SOF2).
    pub is_progressive: bool,
    /// Horizontal and vertical sampling factor of each component (T.81, A.1.1).
    pub sampling: Vec<(u8, u8)>,
}

impl JpegSummary {
    /// Reads the headers of a file or of a coefficient form.
    pub fn of(stored: &[u8]) -> Result<Self, Error> {
        let mut header = Header::default();
        if form_of(stored).is_some() {
            let reader = form::FormReader::open(stored, Cpu::Portable)?;
            Skeleton::from_bytes(reader.skeleton())?.parse_into(&mut header)?;
        } else {
            header.parse_frame_only(stored)?;
        }
        Ok(Self::of_frame(&header.frame))
    }

    fn of_frame(frame: &Frame) -> Self {
        let factor = |value: u32| u8::try_from(value).expect("a sampling factor is at most 4");
        let components = frame.components().iter();
        Self {
            is_progressive: frame.coding == Coding::Progressive,
            sampling: components.map(|c| (factor(c.h), factor(c.v))).collect(),
        }
    }

    /// The usual name of how colours are subsampled: `4:2:0`, `gray`; where there is none, the
    /// factors, as in `2x2,1x2,1x1`.
    pub fn subsampling(&self) -> String {
        let factors = || {
            let pairs = self.sampling.iter().map(|(h, v)| format!("{h}x{v}"));
            pairs.collect::<Vec<_>>().join(",")
        };
        match self.sampling[..] {
            [_] => "gray".to_owned(),
            [(h, v), (1, 1), (1, 1)] => match (h, v) {
                (1, 1) => "4:4:4".to_owned(),
                (2, 1) => "4:2:2".to_owned(),
                (2, 2) => "4:2:0".to_owned(),
                (1, 2) => "4:4:0".to_owned(),
                (4, 1) => "4:1:1".to_owned(),
                (4, 2) => "4:1:0".to_owned(),
                _ => factors(),
            },
            _ => factors(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::JpegSummary;

    #[test]
    fn subsampling_has_its_usual_name_or_its_factors() {
        let name = |sampling: &[(u8, u8)]| {
            JpegSummary { is_progressive: false, sampling: sampling.to_vec() }.subsampling()
        };
        assert_eq!(name(&[(1, 1)]), "gray");
        assert_eq!(name(&[(2, 2), (1, 1), (1, 1)]), "4:2:0");
        assert_eq!(name(&[(2, 2), (1, 2), (1, 1)]), "2x2,1x2,1x1");
        assert_eq!(name(&[(1, 1); 4]), "1x1,1x1,1x1,1x1");
    }
}
