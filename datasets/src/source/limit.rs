//! The longest sample of a source: what is longer does not read.

use super::{Entry, Finished, Size, Source, SourceSchema};
use crate::{Error, LeftOut};
use meetpoint_format::dataset::schema::IMAGE_BYTES_MAX;
use meetpoint_format::units::show_bytes;

/// A source whose samples have at most so many bytes of content; those that a dataset may have
/// where nothing is said.
pub(super) fn limited(source: Box<dyn Source>, bytes_max: Option<u64>) -> Box<dyn Source> {
    Box::new(Limited { source, bytes_max: bytes_max.unwrap_or(IMAGE_BYTES_MAX) })
}

/// A size and the limit below it; exact where they would read the same with a unit.
pub(crate) fn size_and_limit(bytes: u64, limit: u64) -> (String, String) {
    let (size, most) = (show_bytes(bytes), show_bytes(limit));
    // A fraction that is rounded away leaves "256.0 MiB" of what is one byte more than 256 MiB.
    if size.replace(".0 ", " ") == most.replace(".0 ", " ") {
        return (format!("{bytes} bytes"), format!("{limit} bytes"));
    }
    (size, most)
}

struct Limited {
    source: Box<dyn Source>,
    bytes_max: u64,
}

impl Source for Limited {
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
                let reason = format!("{long}, the limit is {limit} (--sample-bytes-max)");
                Entry::Unreadable(LeftOut { path: item.name(), reason })
            }
            other => other,
        }))
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        self.source.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::size_and_limit;

    #[test]
    fn a_size_and_its_limit_never_read_the_same() {
        let words = |bytes, limit| {
            let (size, most) = size_and_limit(bytes, limit);
            format!("{size} of {most}")
        };
        assert_eq!(words(300 << 20, 256 << 20), "300 MiB of 256 MiB");
        assert_eq!(words(60_000, 50_000), "58.6 KiB of 48.8 KiB");
        assert_eq!(words((256 << 20) + 1, 256 << 20), "268435457 bytes of 268435456 bytes");
        assert_eq!(words(900, 899), "900 bytes of 899 bytes");
    }
}
