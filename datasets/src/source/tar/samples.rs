//! Groups members of a tar file into samples like the webdataset library.
//!
//! The key of a member is its path up to the first dot of its last component; the rest is its part,
//! in lower case. Members of a sample are consecutive.

use super::members::{Member, MemberKind, Members};
use crate::message::Message;
use crate::source::budget::{MemoryBudget, ReservedBytes};
use crate::source::names::{SeenKeys, relative_path, shown};
use crate::source::{Entry, SampleOrigin};
use crate::store::StorePath;
use crate::{Error, LeftOut};
use meetpoint_diagnose::Remedy;
use meetpoint_format::dataset::schema::IMAGE_BYTES_MAX;
use std::collections::VecDeque;

/// Maximum number of members of a sample; the library has no limit.
const MEMBERS_MAX: usize = 1024;

/// A member and its bytes, if they were read.
#[derive(Debug)]
pub(super) struct Part {
    /// The name after the first dot, in lower case.
    pub(super) name: String,
    pub(super) member: Member,
    /// Its bytes, or why they could not be read; `None` if they were not requested.
    pub(super) bytes: Option<Result<ReservedBytes, String>>,
}

/// A sample of an archive.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: String,
    pub(super) origin: SampleOrigin,
    pub(super) parts: Vec<Part>,
    /// Why it cannot be read, if one of its members cannot.
    pub(super) broken: Option<Message>,
}

/// A sample or another entry of an archive.
#[derive(Debug)]
pub(super) enum ArchiveItem {
    Group(Group),
    /// Something that is not a sample.
    Other(Entry),
}

/// Reads the samples of one archive.
pub(super) struct Samples {
    members: Members,
    open: Option<Group>,
    ready: VecDeque<ArchiveItem>,
    seen: SeenKeys,
    is_ended: bool,
}

/// Limits for reading a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLimits {
    /// Maximum number of bytes.
    pub(super) bytes_max: u64,
    /// Memory to reserve per byte, including the values parsed from it.
    pub(super) memory_per_byte: u64,
}

/// Returns the limits for reading a part, or `None` to skip it.
pub(super) type LimitsOf<'a> = dyn Fn(&str) -> Option<ReadLimits> + 'a;

impl Samples {
    /// Opens an archive.
    pub(super) fn open(path: &StorePath, budget: &MemoryBudget) -> Result<Self, Error> {
        Ok(Self {
            members: Members::open(path, budget)?,
            open: None,
            ready: VecDeque::new(),
            seen: SeenKeys::default(),
            is_ended: false,
        })
    }

    /// The archive.
    pub(super) fn members(&self) -> &Members {
        &self.members
    }

    /// The next sample; reads those members for which `limits_of` returns limits.
    pub(super) fn next(&mut self, limits_of: &LimitsOf<'_>) -> Result<Option<ArchiveItem>, Error> {
        while self.ready.is_empty() && !self.is_ended {
            match self.members.next()? {
                Some(member) => self.take(member, limits_of)?,
                None => {
                    self.ready.extend(self.open.take().map(ArchiveItem::Group));
                    self.is_ended = true;
                }
            }
        }
        Ok(self.ready.pop_front())
    }

    fn take(&mut self, member: Member, limits_of: &LimitsOf<'_>) -> Result<(), Error> {
        let left_out = |reason: Message| LeftOut {
            path: format!("{}: {}", self.members.input().origin(None, 0).file, shown(&member.name)),
            reason,
        };
        let other = match member.kind {
            MemberKind::Folder => Some(Entry::Ignored),
            MemberKind::Other => {
                Some(Entry::NotASample(left_out("a device, a pipe or a label".into())))
            }
            MemberKind::Link | MemberKind::Sparse | MemberKind::File => None,
        };
        if let Some(other) = other {
            self.ready.push_back(ArchiveItem::Other(other));
            return Ok(());
        }
        let path = match relative_path(&member.name) {
            Ok(path) => path,
            Err(reason) => {
                let entry = Entry::Unreadable(left_out(reason));
                self.ready.push_back(ArchiveItem::Other(entry));
                return Ok(());
            }
        };
        let Some((key, name)) = split(&path) else {
            let is_side = path.split('/').any(|name| name.starts_with('.') || is_meta(name));
            self.ready.push_back(ArchiveItem::Other(match is_side {
                true => Entry::Ignored,
                false => Entry::NotASample(left_out("its name has no extension".into())),
            }));
            return Ok(());
        };
        let name = name.to_lowercase();
        if !self.members.is_plain() && member.bytes > IMAGE_BYTES_MAX {
            // Skipping it would decompress all of it.
            let problem = format!("it has {} bytes, the limit is {IMAGE_BYTES_MAX}", member.bytes);
            return Err(self.members.input().malformed(
                Some(member.shown()),
                member.offset,
                problem,
            ));
        }
        self.begin(key, &member)?;
        let bytes = match (member.kind, limits_of(&name)) {
            (MemberKind::File, Some(limits)) if member.bytes > limits.bytes_max => {
                Some(Err(format!("{} bytes, the limit is {}", member.bytes, limits.bytes_max)))
            }
            (MemberKind::File, Some(limits)) => {
                let mut held = self.members.read(&member)?;
                let more = member.bytes.saturating_mul(limits.memory_per_byte.saturating_sub(1));
                held.grow(more).map_err(|over| {
                    let place = Some(member.shown());
                    self.members.input().over_budget(place, member.offset, over)
                })?;
                Some(Ok(held))
            }
            _ => None,
        };
        let group = self.open.as_mut().expect("begin() opens it");
        match member.kind {
            MemberKind::Link => {
                let problem = Message::from(format!("{} is a link", member.shown()));
                let remedy = "archive with --dereference and --hard-dereference";
                group.broken = Some(problem.remedy(remedy));
            }
            MemberKind::Sparse => {
                let problem = Message::from(format!("{} is a sparse file", member.shown()));
                group.broken = Some(problem.remedy("archive without --sparse"));
            }
            _ => {}
        }
        if group.parts.iter().any(|part| part.name == name) {
            return Err(self.members.input().malformed(
                Some(member.shown()),
                member.offset,
                Message::from("it occurs twice").remedy("remove one of them"),
            ));
        }
        if group.parts.len() == MEMBERS_MAX {
            let problem = Message::from(format!(
                "sample {key} has more than {MEMBERS_MAX} members"
            ))
            .remedy("rename members with dots within their key, which ends at the first dot");
            return Err(self.members.input().malformed(
                Some(member.shown()),
                member.offset,
                problem,
            ));
        }
        group.parts.push(Part { name, member, bytes });
        Ok(())
    }

    /// Starts the sample with this key unless it is the current one.
    fn begin(&mut self, key: &str, member: &Member) -> Result<(), Error> {
        if self.open.as_ref().is_some_and(|open| open.key == key) {
            return Ok(());
        }
        self.ready.extend(self.open.take().map(ArchiveItem::Group));
        if !self.seen.insert(key) {
            let problem = Message::from(format!("sample {key} occurs a second time")).remedy(
                Remedy::advice(
                    "archive with --sort=name, so that members of a sample are adjacent",
                )
                .or("rename one of the samples"),
            );
            return Err(self.members.input().malformed(
                Some(member.shown()),
                member.offset,
                problem,
            ));
        }
        let origin = self.members.input().origin(Some(member.shown()), member.offset);
        self.open = Some(Group { key: key.to_owned(), origin, parts: Vec::new(), broken: None });
        Ok(())
    }
}

/// Key and part of a path; `None` if its last component has no dot after its first character.
fn split(path: &str) -> Option<(&str, &str)> {
    let begin = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = begin + path[begin..].find('.')?;
    let is_side = path.split('/').any(|name| name.starts_with('.') || is_meta(name));
    (dot > begin && dot + 1 < path.len() && !is_side).then(|| (&path[..dot], &path[dot + 1..]))
}

/// Whether the library reserves the name, such as `__header__`.
fn is_meta(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_key_ends_at_the_first_dot_of_the_last_component() {
        assert_eq!(split("a/b.c/0001.seg.png"), Some(("a/b.c/0001", "seg.png")));
        assert_eq!(split("0001.jpg"), Some(("0001", "jpg")));
        for none in ["0001", "a.b/0001", ".hidden", "a/.b.jpg", "0001.", "__meta__/x.json"] {
            assert_eq!(split(none), None, "{none}");
        }
    }
}
