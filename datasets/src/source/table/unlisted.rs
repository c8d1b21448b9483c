//! Files of a folder without a row in its table, which are reported one by one.

use crate::source::names::SeenKeys;
use crate::source::{ContentKind, Entry, folder};
use crate::store::StorePath;
use crate::{Error, LeftOut};
use std::path::Path;

/// The folder of a table, and the files in its rows.
pub(super) struct UnlistedFiles {
    folder: StorePath,
    table: StorePath,
    named: SeenKeys,
}

impl UnlistedFiles {
    pub(super) fn new(folder: StorePath, table: &StorePath) -> Self {
        let mut unlisted = Self { folder, table: table.clone(), named: SeenKeys::default() };
        unlisted.name(table.path());
        unlisted
    }

    /// Records a file that a row names.
    pub(super) fn name(&mut self, file: &Path) {
        self.named.insert(&file.to_string_lossy());
    }

    /// Lists the files of this kind that no row names.
    pub(super) fn list(self, kind: ContentKind, follow_links: bool) -> Result<Vec<Entry>, Error> {
        let kind = if kind == ContentKind::None { ContentKind::Image } else { kind };
        let listed = folder::list(&self.folder, kind, follow_links)?;
        let table = self.table.path();
        let table = table.strip_prefix(self.folder.path()).unwrap_or(table);
        let without_row = listed.samples.into_iter().map(|path| {
            let reason = format!("no row of {} names it", table.display()).into();
            LeftOut { path, reason }
        });
        let is_unlisted = |left_out: &LeftOut| {
            let path = self.folder.join(&left_out.path);
            !self.named.contains(&path.shown())
        };
        let left_out = without_row.chain(listed.unreadable).chain(listed.others);
        let entries = left_out.filter(is_unlisted).map(Entry::NotASample);
        Ok(entries.chain((0..listed.ignored).map(|_| Entry::Ignored)).collect())
    }
}
