//! `mte`, moving towards each other: a fixed split, the host's part first, then the devices'.

use crate::board::Board;
use crate::closed_forms::{self, Inputs, NotApplicable, Prediction, Regime, Times};
use crate::error::{Error, OptionTooLarge, at_least_one};
use crate::terms::Terms;

use super::guarantees::Order;
use super::host_only::HostOnly;
use super::option::{AcceptedValues, OptionSpec, Value, WholeRange, set_word, texts, word_of};
use super::ordered::{
    Caps, Division, OrderProgress, Ordered, Pattern, SharePolicy, Shares, Sharing,
};
use super::strategy::{DeviceUse, EpochPlanner, RecordKind, Strategy, StrategyOption};
use crate::strategy_name::StrategyName;

/// A fixed split: the host's part is consumed first, then the devices'.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mte {
    /// How the devices' share is determined.
    pub split: Split,
    /// Order in which the devices' part is consumed.
    pub tail: Tail,
}

/// How many batches `mte` assigns to the devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Split {
    /// Both ends finish together: n_s = N·t_c/(t_c+t_s), from [`crate::Config::learned`] if known,
    /// else from the first [`crate::Config::profile_batches`] of each source.
    #[default]
    EqualFinish,
    /// The shortest epoch: n_s = N·t_c/(t_s+t_c-t_g), the device works on while its part is
    /// drained. Determined as for `EqualFinish`.
    Optimal,
    /// Exactly this number.
    Fixed(u32),
}

/// Order of the devices' part under `mte`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tail {
    /// As produced, from the back: N-1, N-2, …; consuming may overlap producing.
    #[default]
    Descending,
    /// n_c, n_c+1, …: the order of the host alone (C4).
    Ascending,
}

impl Tail {
    /// The names in job files, with their values.
    pub const WORDS: [(&'static str, Self); 2] =
        [("descending", Self::Descending), ("ascending", Self::Ascending)];
}

/// The splits that are not a number.
const SPLITS: [(&str, Split); 2] =
    [("equal-finish", Split::EqualFinish), ("optimal", Split::Optimal)];

const SPLIT_TEXTS: [&str; 2] = texts(&SPLITS);
const TAIL_TEXTS: [&str; 2] = texts(&Tail::WORDS);

impl Strategy for Mte {
    const NAME: StrategyName = StrategyName::Mte;
    const SUMMARY: &'static str = "the epoch is split at the beginning; the host's part is \
         consumed first, then the devices' part";
    const DEVICES: DeviceUse = DeviceUse::Required;
    const RECORD: RecordKind = RecordKind::Shares;
    const OPTIONS: &'static [StrategyOption<Self>] = &[
        StrategyOption {
            spec: OptionSpec {
                name: "split",
                summary: "how the devices' share is determined",
                takes: AcceptedValues {
                    words: &SPLIT_TEXTS,
                    whole: Some(WholeRange::any("the devices' batches")),
                    ..AcceptedValues::NOTHING
                },
            },
            get: |mte| match mte.split {
                Split::Fixed(batches) => Value::Whole(batches),
                named @ (Split::EqualFinish | Split::Optimal) => word_of(&SPLITS, &named),
            },
            set: |mte, value| match value {
                Value::Whole(batches) => {
                    mte.split = Split::Fixed(batches);
                    true
                }
                Value::Word(_) | Value::Share(_) => set_word(&SPLITS, value, &mut mte.split),
            },
        },
        StrategyOption {
            spec: OptionSpec {
                name: "tail",
                summary: "order in which the devices' part is consumed",
                takes: AcceptedValues { words: &TAIL_TEXTS, ..AcceptedValues::NOTHING },
            },
            get: |mte| word_of(&Tail::WORDS, &mte.tail),
            set: |mte, value| set_word(&Tail::WORDS, value, &mut mte.tail),
        },
    ];

    fn order(&self) -> Order {
        match self.tail {
            Tail::Descending => Order::Replayable,
            Tail::Ascending => Order::Baseline,
        }
    }

    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        match self.split {
            Split::EqualFinish => equal_finish(inputs, self.tail),
            Split::Optimal => closed_forms::two_phases(inputs),
            Split::Fixed(part) => fixed(inputs, part, self.tail),
        }
    }

    fn fits(&self, batches: u32) -> Result<(), OptionTooLarge> {
        match self.split {
            Split::Fixed(asked) if asked > batches => {
                Err(OptionTooLarge { strategy: Self::NAME, option: "split", asked, batches })
            }
            Split::Fixed(_) | Split::EqualFinish | Split::Optimal => Ok(()),
        }
    }

    fn check(&self, terms: &Terms) -> Result<(), Error> {
        match self.split {
            Split::EqualFinish | Split::Optimal
                if !terms.times_known() && terms.replay.is_none() =>
            {
                at_least_one("profile_batches", terms.profile_batches)
            }
            Split::EqualFinish | Split::Optimal | Split::Fixed(_) => Ok(()),
        }
    }
}

/// n_s = N·t_c/(t_c+t_s), T = N·t_c·(t_s+t_g)/(t_s+t_c): both ends finish together, then the
/// device's part is drained. A spool smaller than n_s limits the device's part.
fn equal_finish(inputs: &Inputs, tail: Tail) -> Result<Prediction, NotApplicable> {
    let Times { n, t_c, t_s, t_g } = Times::of(inputs)?;
    let device_batches = n * t_c / (t_c + t_s);
    if device_batches > f64::from(inputs.spool_slots) {
        return fixed(inputs, inputs.spool_slots, tail);
    }
    Ok(Prediction {
        total_ns: n * t_c * (t_s + t_g) / (t_s + t_c),
        device_batches,
        regime: Regime::BothEnds,
        formula: "T = N·t_c·(t_s+t_g)/(t_s+t_c)",
    })
}

/// A fixed split. With a descending tail, draining overlaps producing: T = max(n_c·t_c + n_s·t_g,
/// n_s·t_s + t_g); with an ascending tail, it begins when the device has finished: T = max(n_c·t_c,
/// n_s·t_s) + n_s·t_g.
fn fixed(inputs: &Inputs, part: u32, tail: Tail) -> Result<Prediction, NotApplicable> {
    if part == 0 {
        return HostOnly.closed_form(inputs);
    }
    let Times { n, t_c, t_s, t_g } = Times::of(inputs)?;
    if part > inputs.spool_slots {
        return Err(NotApplicable::SpoolTooSmall { part, slots: inputs.spool_slots });
    }
    let device_batches = f64::from(part);
    let (host_ends, device_ends) = ((n - device_batches) * t_c, device_batches * t_s);
    let host_bound = host_ends + device_batches * t_g;
    let (device_bound, formula) = match tail {
        Tail::Descending => (device_ends + t_g, "T = max(n_c·t_c+n_s·t_g, n_s·t_s+t_g)"),
        Tail::Ascending => {
            (device_ends + device_batches * t_g, "T = max(n_c·t_c, n_s·t_s)+n_s·t_g")
        }
    };
    let regime =
        if device_bound > host_bound { Regime::WaitsForDevice } else { Regime::WaitsForHost };
    Ok(Prediction { total_ns: host_bound.max(device_bound), device_batches, regime, formula })
}

impl EpochPlanner for Mte {
    type Plan = Ordered<Sharing<Self>>;

    fn plan(&self, terms: &Terms) -> Self::Plan {
        let pattern = match self.tail {
            Tail::Descending => Pattern::Open,
            Tail::Ascending => Pattern::Windows,
        };
        Sharing::plan(terms, pattern, *self)
    }
}

impl SharePolicy for Mte {
    fn given(&self) -> Option<(u32, Caps)> {
        let caps = match self.tail {
            Tail::Descending => Caps::Held,
            Tail::Ascending => Caps::Spool,
        };
        match self.split {
            Split::Fixed(total) => Some((total, caps)),
            Split::EqualFinish | Split::Optimal => None,
        }
    }

    fn division(&self) -> Option<(Division, Caps)> {
        match (self.split, self.tail) {
            (Split::EqualFinish, _) => Some((Division::EqualFinish, Caps::Spool)),
            (Split::Optimal, Tail::Ascending) => Some((Division::Optimal, Caps::Spool)),
            (Split::Optimal, Tail::Descending) => Some((Division::Optimal, Caps::Drained)),
            (Split::Fixed(_), _) => None,
        }
    }

    fn pattern(&self, _: &OrderProgress, _: &Board, _: &Shares, _: u32) -> Pattern {
        match self.tail {
            Tail::Descending => Pattern::Split,
            Tail::Ascending => Pattern::Ascending,
        }
    }

    fn replayed(
        &self,
        progress: &mut OrderProgress,
        board: &Board,
        shares: &mut Shares,
        _: &[u64],
    ) -> Pattern {
        match self.tail {
            Tail::Descending => Pattern::Split,
            Tail::Ascending => {
                // The order does not depend on which end prepares a batch.
                shares.fit_spools(progress, board);
                Pattern::Ascending
            }
        }
    }
}
