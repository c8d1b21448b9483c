//! Symbolic links in a source. Links to targets inside it are followed. Links that lead out of it
//! are followed only if the user allows it, since a folder from a stranger could otherwise bring
//! the user's private files into a dataset.

use super::side_files::side_files;
use crate::Error;
use crate::store::{StorePath, WalkEntry, WalkOptions};
use std::path::PathBuf;

/// Maximum depth to which folders of shards are searched.
const DEPTH_MAX: usize = 4;

/// Which links below a folder are followed.
#[derive(Debug)]
pub(super) struct Links {
    /// The folder, with its own links resolved; `None` if all links are followed.
    root: Option<PathBuf>,
    /// The folder that was checked last, and its target if that is outside.
    folder: Option<(PathBuf, Option<PathBuf>)>,
}

impl Links {
    /// The links of the source in the folder `root`.
    pub(super) fn below(root: &StorePath, follow_links: bool) -> Result<Self, Error> {
        let root = match follow_links {
            true => None,
            false => {
                let failed = |source| Error::Source { path: root.to_path_buf(), source };
                Some(root.resolve().map_err(failed)?)
            }
        };
        Ok(Self { root, folder: None })
    }

    /// The target of a link that must not be followed. A dangling link returns `None`; opening it
    /// fails.
    pub(super) fn leads_out(&self, link: &StorePath) -> Option<PathBuf> {
        let root = self.root.as_ref()?;
        let target = link.resolve().ok()?;
        (!target.starts_with(root)).then_some(target)
    }

    /// Like [`Self::leads_out`], for a path that may be below a link instead of being one.
    pub(super) fn path_leads_out(&mut self, path: &StorePath) -> Option<PathBuf> {
        self.root.as_ref()?;
        let parent = path.folder();
        let known = self.folder.as_ref().filter(|(folder, _)| folder == parent.path());
        let above = match known {
            Some((_, above)) => above.clone(),
            None => {
                let above = self.leads_out(&parent);
                self.folder = Some((parent.to_path_buf(), above.clone()));
                above
            }
        };
        above.or_else(|| if path.is_link() { self.leads_out(path) } else { None })
    }
}

/// Fails if a link in a folder of shards leads out of it, or if a side file of a single file is
/// such a link. Paths and patterns from the user may be links.
pub(super) fn refuse_leading_out(path: &StorePath, follow_links: bool) -> Result<(), Error> {
    if follow_links || !path.exists() {
        return Ok(());
    }
    let folder = if path.is_dir() { path.clone() } else { path.folder() };
    let links = Links::below(&folder, follow_links)?;
    let refused = |link: &StorePath| match links.leads_out(link) {
        Some(target) => Err(Error::LinkLeadsOut { link: link.to_path_buf(), target }),
        None => Ok(()),
    };
    if !path.is_dir() {
        return side_files(path).iter().try_for_each(refused);
    }
    let options = WalkOptions { min_depth: 1, max_depth: DEPTH_MAX, follow_links: false };
    let is_seen = |found: &WalkEntry| !found.name().as_encoded_bytes().starts_with(b".");
    // Entries that cannot be read here are reported when they are read as shards.
    let found = path.walk(options, is_seen).filter_map(Result::ok);
    found.filter(|found| found.is_link).try_for_each(|found| refused(&path.at(found.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_links_that_lead_out_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("in"), folder.path().join("out"));
        for folder in [&root, &outside, &root.join("a")] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(outside.join("x"), "x").unwrap();
        std::fs::write(root.join("a/y"), "y").unwrap();
        symlink("a/y", root.join("within")).unwrap();
        symlink(root.join("a"), root.join("absolute")).unwrap();
        symlink("../out/x", root.join("file")).unwrap();
        symlink(&outside, root.join("folder")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        let root = StorePath::local(root);
        let mut links = Links::below(&root, false).unwrap();
        let target = outside.join("x").canonicalize().unwrap();
        for (name, expected) in [
            ("within", None),
            ("absolute/y", None),
            ("a/y", None),
            ("broken", None),
            ("file", Some(&target)),
        ] {
            assert_eq!(links.path_leads_out(&root.join(name)).as_ref(), expected, "{name}");
        }
        assert!(links.path_leads_out(&root.join("folder/x")).is_some());
        let mut all = Links::below(&root, true).unwrap();
        assert_eq!(all.path_leads_out(&root.join("file")), None);
        assert!(matches!(refuse_leading_out(&root, false), Err(Error::LinkLeadsOut { .. })));
        assert!(refuse_leading_out(&root, true).is_ok());
    }
}
