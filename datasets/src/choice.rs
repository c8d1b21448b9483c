//! The common interface of option values.

/// A closed set of values of an option, each with a name.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every value, in the order in which help texts list them.
    const ALL: &'static [Self];

    /// The name that users write.
    fn name(self) -> &'static str;

    /// The meaning of the value, if its name does not explain it.
    fn meaning(self) -> Option<&'static str> {
        None
    }

    /// The value with this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}
