//! The control groups of this process (cgroups(7)).

use std::path::{Component, Path, PathBuf};

/// Versions of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Several hierarchies, each with some controllers.
    V1,
    /// One hierarchy with all of them.
    V2,
}

/// A mounted hierarchy, and the group of this process in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its version.
    pub version: Version,
    /// The controllers of version 1; empty for version 2, whose folders list theirs.
    pub controllers: Vec<String>,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The group of this process, relative to `mount`.
    pub group: PathBuf,
}

impl Hierarchy {
    /// Whether a controller belongs to this hierarchy, or may in version 2.
    pub fn may_control(&self, controller: &str) -> bool {
        self.version == Version::V2 || self.controllers.iter().any(|it| it == controller)
    }

    /// Folders of the group and of those above it.
    pub fn groups(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.group.ancestors().map(|group| self.mount.join(group))
    }
}

/// The hierarchies in the content of `/proc/self/cgroup` and `/proc/self/mountinfo`. Lines that
/// cannot be parsed are skipped.
pub fn hierarchies(membership: &str, mounts: &str) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        // "36 35 98:0 /root /mount options optional... - type source options" (proc(5)).
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let mut after = after.split(' ');
        let (kind, options) = (after.next().unwrap_or_default(), after.nth(1).unwrap_or_default());
        let version = match kind {
            "cgroup2" => Version::V2,
            "cgroup" => Version::V1,
            _ => continue,
        };
        let mut before = before.split(' ').skip(3);
        let (Some(root), Some(mount)) = (before.next(), before.next()) else { continue };
        let member = membership.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_mounted = |one: &str| options.split(',').any(|option| option == one);
            let is_it = match version {
                Version::V2 => number == "0" && controllers.is_empty(),
                Version::V1 => !controllers.is_empty() && controllers.split(',').all(is_mounted),
            };
            is_it.then_some((controllers, path))
        });
        let Some((controllers, member)) = member else { continue };
        // In a container, only a part of the hierarchy is mounted. A group outside of it is not
        // visible, but the limit of the container itself is.
        let group = Path::new(member).strip_prefix(root).unwrap_or(Path::new(""));
        let is_inside = group.components().all(|part| matches!(part, Component::Normal(_)));
        let controllers = controllers.split(',').filter(|it| !it.is_empty());
        found.push(Hierarchy {
            version,
            controllers: controllers.map(Into::into).collect(),
            mount: unescaped(mount).into(),
            group: if is_inside { group.to_path_buf() } else { PathBuf::new() },
        });
    }
    found
}

/// A path of mountinfo, in which `\040` is a space.
fn unescaped(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}
