//! The longest sample of a source: longer ones are unreadable.

use super::{Entry, Finished, Size, Source, SourceSchema};
use crate::error::size_and_limit;
use crate::message::Message;
use crate::{Error, LeftOut};
use meetpoint_diagnose::Setting;
use meetpoint_format::dataset::schema::IMAGE_BYTES_MAX;

/// Wraps a source so that samples with more than `bytes_max` bytes of content are unreadable; the
/// default is the limit of a dataset.
pub(super) fn limited(source: Box<dyn Source>, bytes_max: Option<u64>) -> Box<dyn Source> {
    Box::new(SizeLimited { source, bytes_max: bytes_max.unwrap_or(IMAGE_BYTES_MAX) })
}

struct SizeLimited {
    source: Box<dyn Source>,
    bytes_max: u64,
}

impl Source for SizeLimited {
    fn schema(&self) -> &SourceSchema {
        self.source.schema()
    }

    fn size(&self) -> Size {
        self.source.size()
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        let limit = self.bytes_max;
        Ok(self.source.next()?.map(|entry| match entry {
            Entry::Sample(item) if item.content.bytes() > limit => {
                let (long, limit) = size_and_limit(item.content.bytes(), limit);
                let reason = Message::from(format!("{long}, the limit is {limit} ("))
                    + Setting::SampleBytesMax
                    + ")";
                Entry::Unreadable(LeftOut { path: item.name(), reason })
            }
            other => other,
        }))
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        self.source.finish()
    }
}
