//! The content of a plan: the command, its options, the listing of the source cut into parts, and
//! the number of shards.

use super::paths::absolute_source;
use super::rule::PlannedPart;
use crate::error::ShardError;
use crate::source::SourceOptions;
use crate::writer::TOOL;
use meetpoint_format::checksum::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Name of the format of a plan.
const FORMAT: &str = "meetpoint-shards";
/// Its version.
const VERSION: u32 = 1;
/// Name of the last member: SHA-256 of everything before it.
const SELF_SHA256: &str = "self_sha256";
/// Maximum number of shards.
const SHARDS_MAX: u64 = 1 << 20;
/// Suffix that is appended to the destination's name for the plan's folder.
const SUFFIX: &str = ".shards";

/// A command that can be divided into shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardCommand {
    /// Packs a source, or indexes it in place.
    Pack,
    /// Writes a source in another format.
    Convert,
    /// Executes the first operations of a recipe.
    Prepare,
    /// Checks a dataset.
    Verify,
}

impl ShardCommand {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::Convert => "convert",
            Self::Prepare => "prepare",
            Self::Verify => "verify",
        }
    }
}

/// The source of a plan, whose files must not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSource {
    /// Absolute path or URL.
    pub path: PathBuf,
    /// Options of the source.
    pub options: SourceOptions,
    /// Names, lengths and times of its files, as [`SourceStamp`](crate::source::SourceStamp) shows
    /// them.
    pub stamp: String,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardPlan {
    format: String,
    version: u32,
    /// Program and version. Other versions may write other bytes.
    pub tool: String,
    /// The command.
    pub command: ShardCommand,
    /// Absolute path that the command creates, or reads if it creates nothing.
    pub destination: PathBuf,
    /// Number of shards; 0 for a command that runs in one process.
    pub shards: u64,
    /// Samples of the source.
    pub samples: u64,
    /// Bytes of their content in the source.
    pub source_bytes: u64,
    /// The source; `None` if it is a dataset, which `job` names.
    pub source: Option<PlannedSource>,
    /// The parts in order.
    pub parts: Vec<PlannedPart>,
    /// Time for the provenance: RFC 3339, in UTC.
    pub time: Option<String>,
    /// Further data of the command.
    pub job: serde_json::Value,
}

/// Summary of a shard's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardSummary {
    /// Its index.
    pub shard: u64,
    /// Number of shards.
    pub shards: u64,
    /// Parts of this shard.
    pub parts: u64,
    /// Parts of this shard that were finished before this run.
    pub parts_before: u64,
    /// Samples of the source in the other parts.
    pub samples: u64,
}

/// The folder of the plan for a destination: `NAME.shards` beside it.
pub fn folder_of(destination: &Path) -> PathBuf {
    // Removes a trailing separator, after which the suffix would be a separate file name.
    let plain: PathBuf = destination.components().collect();
    let mut name = OsString::from(plain);
    name.push(SUFFIX);
    PathBuf::from(name)
}

impl ShardPlan {
    /// A plan of one process for a source that is cut into `parts`.
    pub fn new(
        command: ShardCommand,
        destination: &Path,
        (parts, samples, source_bytes): (Vec<PlannedPart>, u64, u64),
        job: &impl Serialize,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            tool: TOOL.to_owned(),
            command,
            destination: absolute_source(destination),
            shards: 0,
            samples,
            source_bytes,
            source: None,
            parts,
            time: None,
            job: serde_json::to_value(job).expect("options serialise"),
        }
    }

    /// With a source, whose files have this stamp.
    #[must_use]
    pub(crate) fn with_source(
        mut self,
        path: &Path,
        options: &SourceOptions,
        stamp: String,
    ) -> Self {
        self.source =
            Some(PlannedSource { path: absolute_source(path), options: options.clone(), stamp });
        self
    }

    /// With a number of shards, from 1 to 2^20.
    pub fn in_shards(mut self, shards: u64) -> Result<Self, ShardError> {
        self.shards = shards;
        match shards {
            1..=SHARDS_MAX => Ok(self),
            _ => Err(ShardError::Shards { shards, most: SHARDS_MAX }),
        }
    }

    /// Fails if a path cannot be stored in the plan, which is UTF-8.
    pub(super) fn check_paths(&self) -> Result<(), ShardError> {
        let mut paths = self.source.iter().map(|source| &source.path).chain([&self.destination]);
        match paths.find(|path| path.to_str().is_none()) {
            None => Ok(()),
            Some(path) => Err(ShardError::NotUtf8 { path: path.clone() }),
        }
    }

    /// With the time of the provenance.
    #[must_use]
    pub fn at(mut self, time: Option<String>) -> Self {
        self.time = time;
        self
    }

    /// The plan as JSON, which ends with its own SHA-256, and this SHA-256.
    pub(super) fn to_json(&self) -> (String, String) {
        let text = serde_json::to_string_pretty(self).expect("texts and integers serialise");
        let body = text.strip_suffix("\n}").expect("a pretty-printed object ends in a brace");
        let sha256 = hexadecimal(&Sha256::digest(body.as_bytes()));
        (format!("{body},\n  \"{SELF_SHA256}\": \"{sha256}\"\n}}\n"), sha256)
    }

    /// Parses a plan. Returns its SHA-256 too.
    pub(super) fn from_json(folder: &Path, text: &str) -> Result<(Self, String), ShardError> {
        let refused = |problem: String| ShardError::NoPlan { folder: folder.into(), problem };
        let mark = format!(",\n  \"{SELF_SHA256}\": \"");
        let (body, rest) = text.rsplit_once(mark.as_str()).ok_or_else(|| {
            refused(format!("its plan.json does not end with `{SELF_SHA256}`; it is truncated"))
        })?;
        let sha256 = hexadecimal(&Sha256::digest(body.as_bytes()));
        if rest.trim_end() != format!("{sha256}\"\n}}") {
            return Err(refused("its plan.json was changed since it was written".to_owned()));
        }
        let plan: Self = serde_json::from_str(&format!("{body}\n}}"))
            .map_err(|error| refused(format!("its plan.json cannot be parsed: {error}")))?;
        if plan.format != FORMAT || plan.version != VERSION {
            return Err(refused(format!(
                "its plan.json is {} version {}, not {FORMAT} version {VERSION}",
                plan.format, plan.version
            )));
        }
        if plan.shards > SHARDS_MAX {
            return Err(ShardError::Shards { shards: plan.shards, most: SHARDS_MAX });
        }
        if plan.tool != TOOL {
            let (before, now) = (plan.tool, TOOL.to_owned());
            return Err(ShardError::Tool { folder: folder.into(), before, now });
        }
        plan.check_parts().ok_or_else(|| {
            refused("its plan.json has parts that do not add up to its samples".to_owned())
        })?;
        Ok((plan, sha256))
    }

    /// `None` unless the parts are consecutive and add up to the samples and bytes of the source.
    fn check_parts(&self) -> Option<()> {
        let (mut samples, mut bytes) = (0_u64, 0_u64);
        for part in &self.parts {
            if part.first != samples {
                return None;
            }
            samples = samples.checked_add(part.samples)?;
            bytes = bytes.checked_add(part.source_bytes)?;
        }
        ((samples, bytes) == (self.samples, self.source_bytes)).then_some(())
    }

    /// Parses the further data of the command.
    pub fn job<T: for<'de> Deserialize<'de>>(&self, folder: &Path) -> Result<T, ShardError> {
        serde_json::from_value(self.job.clone()).map_err(|error| ShardError::NoPlan {
            folder: folder.into(),
            problem: format!("its options cannot be parsed: {error}"),
        })
    }

    /// Number of shards that run, at least 1.
    pub fn shard_count(&self) -> u64 {
        self.shards.max(1)
    }

    /// The consecutive parts of a shard. Some shards have none if there are more shards than parts.
    pub fn parts_of(&self, shard: u64) -> Range<u64> {
        let begin = |shard: u64| {
            let product = u128::from(shard) * self.parts.len() as u128;
            u64::try_from(product / u128::from(self.shard_count())).expect("at most the parts")
        };
        begin(shard)..begin(shard + 1)
    }

    /// Number of shards without a part, because there are fewer parts than shards.
    pub fn idle_shards(&self) -> u64 {
        self.shard_count().saturating_sub(self.parts.len() as u64)
    }

    /// The shard of a part.
    pub fn shard_of(&self, part: u64) -> u64 {
        let end = (u128::from(part) + 1) * u128::from(self.shard_count());
        let shards = end.div_ceil(self.parts.len().max(1) as u128);
        u64::try_from(shards).expect("at most the shards").saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{ShardCommand, ShardError, ShardPlan};
    use crate::shards::PlannedPart;
    use std::path::Path;

    fn plan(parts: usize, shards: u64) -> ShardPlan {
        let part =
            |first| PlannedPart { first, samples: 1, source_bytes: 2, sha256: String::new() };
        let number = parts as u64;
        let parts = ((0..number).map(part).collect(), number, 2 * number);
        ShardPlan {
            shards,
            ..ShardPlan::new(ShardCommand::Pack, Path::new("/a"), parts, &Vec::<u8>::new())
        }
    }

    #[test]
    fn every_part_belongs_to_exactly_one_shard() {
        for (parts, shards) in [(0, 1), (1, 1), (3, 8), (8, 3), (10, 10), (7, 0)] {
            let plan = plan(parts, shards);
            let all = (0..plan.shard_count()).flat_map(|shard| plan.parts_of(shard));
            assert!(all.eq(0..parts as u64), "{parts} parts, {shards} shards");
            let idle = (0..plan.shard_count()).filter(|shard| plan.parts_of(*shard).is_empty());
            assert_eq!(plan.idle_shards(), idle.count() as u64, "{parts} parts, {shards} shards");
            for part in 0..parts as u64 {
                assert!(plan.parts_of(plan.shard_of(part)).contains(&part));
            }
        }
    }

    #[test]
    fn a_plan_is_read_as_it_was_written_and_not_if_a_byte_differs() {
        let (plan, folder) = (plan(3, 2), Path::new("/a.shards"));
        let (text, sha256) = plan.to_json();
        assert_eq!(ShardPlan::from_json(folder, &text).unwrap(), (plan, sha256));
        for (from, to) in [("\"shards\": 2", "\"shards\": 3"), ("}\n", "")] {
            assert!(ShardPlan::from_json(folder, &text.replacen(from, to, 1)).is_err(), "{from}");
        }
        assert!(ShardPlan::from_json(folder, "").is_err());
    }

    #[test]
    fn a_plan_whose_parts_do_not_add_up_is_refused_even_if_its_checksum_is_right() {
        let folder = Path::new("/a.shards");
        let changes: [fn(&mut ShardPlan); 7] = [
            |plan| plan.parts[0].samples = u64::MAX,
            |plan| plan.parts[2].source_bytes = u64::MAX,
            |plan| plan.parts[1].first = u64::MAX,
            |plan| plan.parts.swap(0, 1),
            |plan| plan.parts.truncate(2),
            |plan| plan.samples = u64::MAX,
            |plan| plan.source_bytes -= 1,
        ];
        for change in changes {
            let mut changed = plan(3, 2);
            change(&mut changed);
            let (text, _) = changed.to_json();
            let refused = ShardPlan::from_json(folder, &text);
            assert!(matches!(refused, Err(ShardError::NoPlan { .. })), "{text}");
        }
    }
}
