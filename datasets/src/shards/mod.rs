//! Work that is divided among processes or hosts: a plan, shards that run anywhere, and a commit
//! that joins their results.
//!
//! A plan divides the listing of a source into parts by a rule that does not depend on the content,
//! so that the result has the same bytes for any number of shards, attempts and crashes. Each part
//! is processed independently, and each finished part has its own record file. The commands are
//! [`pack`](crate::pack::sharded), [`convert`](crate::unpack::sharded) and
//! [`verify`](crate::verify::sharded).
//!
//! In reading order: [`PartRule`] and [`PlannedPart`] (where parts end), [`ShardPlan`] (the content
//! of a plan), `stamps` (which file of the source changed), [`PlanFolder`] (the folder that all
//! shards share), [`ShardOptions`] (options of a run), [`alone()`] (runs all shards in this
//! process), [`join`] (joins parts to a dataset), [`ShardError`].

mod alone;
mod dataset;
mod folder;
mod options;
mod paths;
mod plan;
mod rule;
mod stamps;

pub use crate::error::ShardError;
pub use alone::{alone, with_remains};
pub(crate) use dataset::place;
pub use dataset::{Joined, PartBuilder, PartResult, Totals, join};
pub use folder::{Attempt, Line, PlanFolder};
pub use options::ShardOptions;
pub use options::check_rule;
pub(crate) use paths::{absolute_options, absolute_source};
pub use plan::{PlannedSource, ShardCommand, ShardPlan, ShardSummary, folder_of};
pub use rule::{ListingDigest, PartRule, PartSplitter, PlannedPart};
pub(crate) use stamps::list_stamps;
