//! A source of files that stand for objects, in terms of the URL.

use super::mirror::Mirror;
use crate::source::detect::open_here;
use crate::source::{Entry, Finished, Size, Source, SourceOptions, SourceSchema};
use crate::{Error, LeftOut};
use std::sync::Arc;

/// Opens what a mirror holds.
pub(in crate::source) fn open(
    mirror: &Arc<Mirror>,
    kind: Option<&str>,
    options: &SourceOptions,
) -> Result<Box<dyn Source>, Error> {
    mirror.register();
    let mut options = options.clone();
    options.table = options.table.map(|table| mirror.inner(&table));
    options.root = options.root.map(|root| mirror.inner(&root));
    let source = open_here(mirror.opened(), kind, &options);
    // What a kind passes over while it looks must not decide which one it is.
    mirror.check()?;
    let source = source.map_err(|error| mirror.told(error))?;
    Ok(Box::new(Elsewhere { source, mirror: Arc::clone(mirror) }))
}

/// A source, whose places are told in terms of the URL.
struct Elsewhere {
    /// Dropped before the mirror that its files are in.
    source: Box<dyn Source>,
    mirror: Arc<Mirror>,
}

impl Elsewhere {
    fn left_out(&self, left_out: LeftOut) -> LeftOut {
        let LeftOut { path, reason } = left_out;
        let reason = self.mirror.text(&reason.to_string()).into();
        LeftOut { path: self.mirror.text(&path), reason }
    }
}

impl Source for Elsewhere {
    fn schema(&self) -> &SourceSchema {
        self.source.schema()
    }

    fn size(&self) -> Size {
        self.source.size()
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        let next = self.source.next();
        self.mirror.check()?;
        Ok(match next.map_err(|error| self.mirror.told(error))? {
            Some(Entry::Sample(mut item)) => {
                item.whence.file = self.mirror.text(&item.whence.file);
                Some(Entry::Sample(item))
            }
            Some(Entry::Unreadable(left_out)) => Some(Entry::Unreadable(self.left_out(left_out))),
            Some(Entry::NotASample(left_out)) => Some(Entry::NotASample(self.left_out(left_out))),
            other => other,
        })
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        let finished = self.source.finish().map_err(|error| self.mirror.told(error))?;
        self.mirror.check_unchanged()?;
        Ok(finished)
    }
}
