//! Where parts end by the listing of the source.

use crate::surface::units;
use meetpoint_datasets::shards::PartRule;

/// Where parts end by the listing of the source.
#[derive(Debug, clap::Args)]
pub(super) struct PartRuleArguments {
    /// Samples of the source after which a new part begins. Parts then depend on the listing of the
    /// source alone, so that `meetpoint shards` gives the same bytes on any number of hosts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    part_samples: Option<u64>,
    /// Bytes of the source that a part has at most; like --part-samples, with which it can be
    /// combined.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    part_source_bytes: Option<u64>,
}

impl PartRuleArguments {
    /// The rule, if one is given.
    pub(super) fn rule(&self) -> Option<PartRule> {
        PartRule::of(self.part_samples, self.part_source_bytes)
    }
}
