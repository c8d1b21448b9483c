//! Checks the keys and labels of all samples of a source, whether packed or left out: keys must be
//! unique, and labels must have names or be small numbers.

use crate::Error;
use crate::error::DIGIT_LABELS_MAX;
use crate::key_set::KeySet;
use crate::source::{Entry, Item, SampleOrigin, Source};

/// The samples so far.
#[derive(Default)]
pub(crate) struct Census {
    keys: KeySet,
    /// The highest label, and the key of a sample that has it.
    label_max: Option<(i32, String)>,
}

impl Census {
    /// Adds a sample. Fails if its key occurred before.
    pub(crate) fn look_at(&mut self, item: &Item) -> Result<(), Error> {
        if !self.keys.insert(&item.key) {
            let (key, second) = (item.key.clone(), item.origin.clone());
            return Err(Error::DuplicateKey { key, first: None, second: Box::new(second) });
        }
        if item.label > self.label_max.as_ref().map(|(label, _)| *label)
            && let Some(label) = item.label.filter(|label| !label.is_negative())
        {
            self.label_max = Some((label, item.key.clone()));
        }
        Ok(())
    }

    /// The names of the labels: `named`, the names that the source has, or else numbers.
    pub(crate) fn labels(&self, named: Vec<String>) -> Result<Vec<String>, Error> {
        let Some((label, key)) = &self.label_max else { return Ok(named) };
        let (label, key) = (*label, key.clone());
        if named.is_empty() && label < DIGIT_LABELS_MAX {
            return Ok((0..=label).map(|label| label.to_string()).collect());
        }
        let limit = if named.is_empty() { DIGIT_LABELS_MAX as usize } else { named.len() };
        if usize::try_from(label).expect("not negative") < limit {
            return Ok(named);
        }
        Err(Error::LabelWithoutName { key, label, names: named.len() as u64 })
    }
}

/// The first location of a key in a source; `None` if the source does not contain it.
pub(super) fn first_place(
    key: &str,
    source: &mut dyn Source,
) -> Result<Option<SampleOrigin>, Error> {
    while let Some(entry) = source.next()? {
        if let Entry::Sample(item) = entry
            && item.key == key
        {
            return Ok(Some(item.origin));
        }
    }
    Ok(None)
}
