//! The targets, which are transformed together with the picture of a sample: one file for each
//! type, and one line in the registry.
//!
//! A target is a column of the dataset to which a recipe applies the geometry of its operations,
//! with the same random parameters as for the picture. In reading order: [`TargetKind`] and its
//! variants, `check` (which operations a target supports).

mod boxes;
mod check;
mod keypoints;
mod mask;
mod saliency;

use super::declaration::TargetDeclaration;
use super::value::{Described, Value, Values};

pub use boxes::Boxes;
pub use keypoints::Keypoints;
pub use mask::Mask;
pub use saliency::Saliency;

pub(super) use boxes::ROTATED_FORMATS;
pub(super) use check::check;

/// The key of a target's table that names its kind.
pub(super) const KIND: &str = "kind";

/// Maximum number of targets of a recipe.
pub const TARGETS_MAX: usize = 32;

/// A target: a column of the dataset, and how it is transformed.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Name of the column.
    pub column: String,
    /// The kind of target.
    pub kind: TargetKind,
}

/// A kind of target as data.
trait Data: Sized {
    const DECLARATION: &'static TargetDeclaration;

    /// The target with these values of its declared keys.
    fn read(values: &Values) -> Self;

    /// The value of each declared key, in the order of the declaration.
    fn values(&self) -> Vec<Value>;
}

macro_rules! targets {
    ($($type:ident),+ $(,)?) => {
        /// The kind of a target, with its options.
        #[derive(Debug, Clone, PartialEq)]
        pub enum TargetKind {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $type($type)),+
        }

        /// The declarations of all kinds of targets, in the order of the documentation.
        pub const TARGET_DECLARATIONS: &[&TargetDeclaration] = &[$($type::DECLARATION),+];

        impl TargetKind {
            /// The declaration of the kind, which does not depend on its values.
            pub fn declaration(&self) -> &'static TargetDeclaration {
                match self {
                    $(Self::$type(_) => $type::DECLARATION),+
                }
            }

            /// The value of each declared key, in the order of the declaration.
            pub fn values(&self) -> Vec<Value> {
                match self {
                    $(Self::$type(it) => it.values()),+
                }
            }

            /// The kind that a table describes, whose values have the declared types.
            pub(super) fn of(described: &Described) -> Self {
                let values = Values(described.keys.to_vec());
                $(if described.name == $type::DECLARATION.name {
                    return Self::$type($type::read(&values));
                })+
                panic!("`{}` is not declared", described.name)
            }
        }

        $(impl From<$type> for TargetKind {
            fn from(kind: $type) -> Self {
                Self::$type(kind)
            }
        })+
    };
}

// The registry, in the order of the documentation.
targets! {
    Mask,
    Saliency,
    Boxes,
    Keypoints,
}

impl TargetKind {
    /// The name in a recipe file.
    pub fn name(&self) -> &'static str {
        self.declaration().name
    }

    /// Whether it consists of points, whose coordinates are transformed, instead of pixels, which
    /// are resampled.
    pub fn has_points(&self) -> bool {
        match self {
            Self::Mask(_) | Self::Saliency(_) => false,
            Self::Boxes(_) | Self::Keypoints(_) => true,
        }
    }

    /// Its name and keys in alphabetical order.
    pub(super) fn describe(&self) -> Described {
        let declared = self.declaration().keys.iter().zip(self.values());
        let written = declared.filter(|(_, value)| *value != Value::Absent);
        let mut keys: Vec<_> = written.map(|(key, value)| (key.name, value)).collect();
        keys.sort_by_key(|(name, _)| *name);
        Described { name: self.name(), keys: keys.into() }
    }
}
