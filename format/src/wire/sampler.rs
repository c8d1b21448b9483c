//! A sampler on the device link: its options in the request, its lists in the pieces that follow.

use super::{LoadPart, LoadRequest, load_part::Part};
use super::{Sampler as SamplerMessage, SamplerOption, sampler_option::Value as Given};
use crate::sampler::{Sampler, SamplerError, Value};

/// Maximum bytes of the lists of a sampler.
pub const SAMPLER_BYTES_MAX: u64 = 1 << 30;

/// Maximum bytes of a list in one message.
const PIECE_BYTES: usize = 512 << 10;

/// Bytes of an element of a list.
const ELEMENT_BYTES: u64 = 8;

/// A message that does not describe a valid sampler.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerMessageError {
    /// An option without a value, or one that this version does not know.
    #[error("option `{option}` of the sampler has no value")]
    NoValue {
        /// Its name.
        option: String,
    },
    /// Lists that are longer than the link transfers.
    #[error("the lists of the sampler have {bytes} bytes, more than {SAMPLER_BYTES_MAX}")]
    TooLong {
        /// As announced.
        bytes: u64,
    },
    /// More or fewer bytes than were announced.
    #[error("the lists of the sampler have {got} bytes, where {announced} were announced")]
    OtherLength {
        /// Bytes received.
        got: u64,
        /// Bytes announced by the options.
        announced: u64,
    },
    /// Options that are invalid.
    #[error("sampler: {0}")]
    Sampler(#[from] SamplerError),
}

impl SamplerMessage {
    /// The message for a sampler, with the checksum of [`crate::sampler::Sampling`] for the
    /// dataset.
    pub fn of(sampler: &Sampler, checksum: [u8; 32]) -> Self {
        let option = |(name, value): (&'static str, Value)| SamplerOption {
            name: name.to_owned(),
            value: Some(match value {
                Value::Whole(number) => Given::Whole(number),
                Value::Flag(flag) => Given::Flag(flag),
                Value::Text(text) => Given::Text(text),
                Value::Wholes(list) => Given::Wholes(list.len() as u64),
                Value::Numbers(list) => Given::Numbers(list.len() as u64),
            }),
        };
        Self {
            name: sampler.name().to_owned(),
            options: sampler.options().into_iter().map(option).collect(),
            checksum: checksum.to_vec(),
        }
    }

    /// Bytes of the lists that its options announce.
    pub fn data_bytes(&self) -> Result<u64, SamplerMessageError> {
        let count = |option: &SamplerOption| match option.value {
            Some(Given::Wholes(count) | Given::Numbers(count)) => count,
            Some(Given::Whole(_) | Given::Flag(_) | Given::Text(_)) | None => 0,
        };
        let counts = self.options.iter().map(count);
        let bytes = counts.fold(0, u64::saturating_add).saturating_mul(ELEMENT_BYTES);
        match bytes <= SAMPLER_BYTES_MAX {
            true => Ok(bytes),
            false => Err(SamplerMessageError::TooLong { bytes }),
        }
    }

    /// The sampler, with the bytes of its lists.
    pub fn read(&self, data: &[u8]) -> Result<Sampler, SamplerMessageError> {
        let announced = self.data_bytes()?;
        let got = data.len() as u64;
        if got != announced {
            return Err(SamplerMessageError::OtherLength { got, announced });
        }
        let mut elements = data.chunks_exact(8).map(|it| it.try_into().expect("8 bytes"));
        let mut options = Vec::with_capacity(self.options.len());
        for SamplerOption { name, value } in &self.options {
            let count = |count: u64| usize::try_from(count).expect("at most SAMPLER_BYTES_MAX");
            let value = match value {
                Some(Given::Whole(number)) => Value::Whole(*number),
                Some(Given::Flag(flag)) => Value::Flag(*flag),
                Some(Given::Text(text)) => Value::Text(text.clone()),
                Some(Given::Wholes(wholes)) => {
                    let list = elements.by_ref().take(count(*wholes));
                    Value::Wholes(list.map(u64::from_le_bytes).collect())
                }
                Some(Given::Numbers(numbers)) => {
                    let list = elements.by_ref().take(count(*numbers));
                    Value::Numbers(list.map(f64::from_le_bytes).collect())
                }
                None => return Err(SamplerMessageError::NoValue { option: name.clone() }),
            };
            options.push((name.clone(), value));
        }
        Ok(Sampler::read(&self.name, options)?)
    }
}

impl From<LoadRequest> for LoadPart {
    fn from(request: LoadRequest) -> Self {
        Self { part: Some(Part::Request(request)) }
    }
}

/// The lists of a sampler in messages of at most 512 KiB.
pub fn sampler_data(sampler: &Sampler) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for (_, value) in sampler.options() {
        let bytes: Vec<u8> = match value {
            Value::Wholes(list) => list.iter().flat_map(|it| it.to_le_bytes()).collect(),
            Value::Numbers(list) => list.iter().flat_map(|it| it.to_le_bytes()).collect(),
            Value::Whole(_) | Value::Flag(_) | Value::Text(_) => continue,
        };
        pieces.extend(bytes.chunks(PIECE_BYTES).map(<[u8]>::to_vec));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{Indices, Shuffled, Weighted, Weights};

    #[test]
    fn samplers_arrive_as_they_were_sent() {
        let indices: Vec<u64> = (0..200_000).map(|n| n * 7 % 1000).collect();
        let weights: Vec<f64> = (0..1000).map(f64::from).collect();
        let samplers: [Sampler; 4] = [
            Shuffled.into(),
            Indices { indices: indices.into(), shuffle: true }.into(),
            Weighted {
                weights: Weights::Numbers(weights.into()),
                replacement: false,
                length: Some(12),
            }
            .into(),
            Weighted {
                weights: Weights::Column("weight".to_owned()),
                replacement: true,
                length: None,
            }
            .into(),
        ];
        for sampler in samplers {
            let message = SamplerMessage::of(&sampler, [7; 32]);
            let pieces = sampler_data(&sampler);
            assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES));
            let data = pieces.concat();
            assert_eq!(message.data_bytes(), Ok(data.len() as u64));
            assert_eq!(message.read(&data), Ok(sampler));
        }
    }

    #[test]
    fn inconsistent_messages_are_refused() {
        let indices = Indices { indices: [1, 2, 3].into(), shuffle: false };
        let message = SamplerMessage::of(&indices.into(), [0; 32]);
        let short = message.read(&[0; 16]);
        assert_eq!(short, Err(SamplerMessageError::OtherLength { got: 16, announced: 24 }));
        let mut long = message.clone();
        long.options[0].value = Some(Given::Wholes(u64::MAX));
        assert!(matches!(long.read(&[]), Err(SamplerMessageError::TooLong { .. })));
        let mut empty = message.clone();
        empty.options[1].value = None;
        assert!(matches!(empty.read(&[0; 24]), Err(SamplerMessageError::NoValue { .. })));
        let unknown = SamplerMessage { name: "indexes".to_owned(), ..message };
        assert!(matches!(unknown.read(&[0; 24]), Err(SamplerMessageError::Sampler(_))));
    }
}
