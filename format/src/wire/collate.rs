//! How pictures of different sizes are combined into a batch, on the device link.

use super::Collate as CollateMessage;
use crate::column::{Collate, CollateError, Pad};

impl From<Collate> for CollateMessage {
    /// Without `max_size`: the size of a slot determines what the device reserves.
    fn from(collate: Collate) -> Self {
        let pad = match collate {
            Collate::Pad(pad) => pad,
            Collate::Stack | Collate::List(_) => Pad::default(),
        };
        Self { mode: collate.mode().to_owned(), multiple_of: pad.multiple_of, fill: pad.fill }
    }
}

impl TryFrom<&CollateMessage> for Collate {
    type Error = CollateError;

    fn try_from(message: &CollateMessage) -> Result<Self, CollateError> {
        let CollateMessage { mode, multiple_of, fill } = message;
        match mode.as_str() {
            "pad" => Self::read(mode, Some((*multiple_of).into()), Some(*fill), None),
            _ => Self::read(mode, None, None, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::List;

    #[test]
    fn what_is_sent_reads_back_without_the_size() {
        let pad = Pad { multiple_of: 32, fill: -1.5, max_size: Some((800, 1333)) };
        let sent = Pad { max_size: None, ..pad };
        let list = Collate::List(List::default());
        let of = [(Collate::Pad(pad), Collate::Pad(sent)), (list, list)];
        for (collate, read) in of.into_iter().chain([(Collate::Stack, Collate::Stack)]) {
            assert_eq!(Collate::try_from(&CollateMessage::from(collate)), Ok(read));
        }
    }

    #[test]
    fn hostile_messages_are_refused() {
        let message = |mode: &str, multiple_of| CollateMessage {
            mode: mode.to_owned(),
            multiple_of,
            fill: 0.0,
        };
        assert!(Collate::try_from(&message("pad", 0)).is_err());
        assert!(Collate::try_from(&message("pad", u32::MAX)).is_err());
        assert!(Collate::try_from(&message("", 1)).is_err());
    }
}
