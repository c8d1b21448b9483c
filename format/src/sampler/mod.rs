//! Samplers: which samples an epoch has, and in which order, as values with random access.
//!
//! A sampler is a description: a name and options. [`Sampling`] applies it to a dataset, and
//! [`crate::batching::Batching`] maps the positions of an epoch to samples with it. The sample at a
//! position is a function of (seed, epoch, position) and the sampler alone, so any strategy, device
//! and rank can start anywhere.
//!
//! In reading order: `declaration` (names, options, values), `values` (options as given), `error`,
//! one file per sampler, `column_type` and `columns` (what samplers read from a dataset),
//! `expression` (filters), `rule` and `sampling` (a sampler on a dataset), `weights` (integers from
//! weights), `cumulative` and `race` (draws with and without replacement), `shares` (positions per
//! device), `positions` (random access), `mixed` (random access to several datasets), `buckets`
//! (random access to batches that share a bucket).

mod aspect_ratio;
mod buckets;
mod class_balanced;
mod column_type;
mod columns;
mod cumulative;
mod declaration;
mod error;
mod expression;
mod filter;
mod indices;
mod mixed;
mod mixture;
mod positions;
mod race;
mod repeated;
mod rule;
mod sampling;
mod sequential;
mod shares;
mod shuffled;
mod values;
mod weighted;
mod weights;

pub use aspect_ratio::AspectRatio;
pub use buckets::Buckets;
pub use class_balanced::ClassBalanced;
pub use column_type::ColumnType;
pub use columns::SampleColumns;
pub use declaration::{Declaration, OptionSpec, OptionType, Value};
pub use error::{LengthLimit, SamplerError};
pub use expression::{Arithmetic, Comparison, Expression, Node, Term};
pub use filter::Filter;
pub use indices::Indices;
pub use mixture::{DATASETS_MAX, Mixture, Stop};
pub use positions::{EpochOrder, Positions};
pub use repeated::Repeated;
pub use rule::{DatasetShare, Rule};
pub use sampling::Sampling;
pub use sequential::Sequential;
pub use shuffled::Shuffled;
pub use weighted::{Weighted, Weights};

use std::fmt;
use values::Values;

/// A sampler as data.
trait Data: Sized {
    const DECLARATION: &'static Declaration;

    /// The sampler with these options, whose names, types and ranges are checked.
    fn read(values: &Values) -> Result<Self, SamplerError>;

    /// The value of each option that is set, in the order of the declaration.
    fn options(&self) -> Vec<(&'static str, Value)>;

    /// Whether every epoch has the same samples in the same order.
    fn is_same_in_every_epoch(&self) -> bool;

    /// The rule that it becomes on a dataset.
    fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error>;

    /// See [`Sampler::memory_bytes`].
    fn memory_bytes(&self, samples: u64) -> u64;
}

macro_rules! samplers {
    ($($type:ident),+ $(,)?) => {
        /// Which samples an epoch has, and in which order.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Sampler {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $type($type)),+
        }

        /// The declarations of all samplers, in the order of the documentation.
        pub const DECLARATIONS: &[&Declaration] = &[$($type::DECLARATION),+];

        impl Sampler {
            /// Everything about the sampler that does not depend on its options.
            pub fn declaration(&self) -> &'static Declaration {
                match self {
                    $(Self::$type(_) => $type::DECLARATION),+
                }
            }

            /// The value of each option that is set, in the order of the declaration.
            pub fn options(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$type(it) => it.options()),+
                }
            }

            /// Whether every epoch has the same samples in the same order.
            pub fn is_same_in_every_epoch(&self) -> bool {
                match self {
                    $(Self::$type(it) => it.is_same_in_every_epoch()),+
                }
            }

            /// Maximum memory that [`Sampling::of`] and [`crate::batching::Batching`] use for it at
            /// a time on a dataset of this size, besides the lists among its options.
            pub fn memory_bytes(&self, samples: u64) -> u64 {
                match self {
                    $(Self::$type(it) => it.memory_bytes(samples)),+
                }
            }

            /// The sampler with this name and these options.
            pub fn read(name: &str, options: Vec<(String, Value)>) -> Result<Self, SamplerError> {
                $(if name == $type::DECLARATION.name {
                    let values = Values::check($type::DECLARATION, options)?;
                    return Ok(Self::$type($type::read(&values)?));
                })+
                Err(SamplerError::unknown(name))
            }

            fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error> {
                match self {
                    $(Self::$type(it) => it.rule(columns)),+
                }
            }
        }

        $(impl From<$type> for Sampler {
            fn from(sampler: $type) -> Self {
                Self::$type(sampler)
            }
        })+
    };
}

// The registry, in the order of the documentation.
samplers! {
    Sequential,
    Shuffled,
    Indices,
    Filter,
    Weighted,
    ClassBalanced,
    Repeated,
    Mixture,
    AspectRatio,
}

impl Sampler {
    /// The name in job files.
    pub fn name(&self) -> &'static str {
        self.declaration().name
    }
}

impl fmt::Display for Sampler {
    /// Name and options, with lists by their length: `indices(indices=[3 sample numbers],
    /// shuffle=false)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options();
        let options = options.iter().map(|(name, value)| format!("{name}={value}"));
        let options: Vec<String> = options.collect();
        match &options[..] {
            [] => f.write_str(self.name()),
            options => write!(f, "{}({})", self.name(), options.join(", ")),
        }
    }
}

/// The declaration of the sampler with this name.
pub fn declaration_of(name: &str) -> Option<&'static Declaration> {
    DECLARATIONS.iter().copied().find(|declaration| declaration.name == name)
}

#[cfg(test)]
mod tests;
