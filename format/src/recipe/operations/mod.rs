//! The operations that a recipe can hold: one file each, and one line in the registry.
//!
//! A new operation is a file here that implements [`Data`], its lines in this file, and its
//! execution in the crate `meetpoint-kernels`. Everything else follows from its declaration.

mod center_crop;
mod color_jitter;
mod decode;
mod fill;
mod grayscale;
mod layout;
mod normalize;
mod random_grayscale;
mod random_horizontal_flip;
mod random_perspective;
mod random_resized_crop;
mod random_rotation;
mod random_vertical_flip;
mod resize;
mod to_dtype;

use super::Layout;
use super::declaration::Declaration;
use super::error::Fault;
use super::sample_type::SampleType;
use super::value::{Value, Values};

pub use center_crop::CenterCrop;
pub use color_jitter::ColorJitter;
pub use decode::Decode;
pub use grayscale::Grayscale;
pub use normalize::Normalize;
pub use random_grayscale::RandomGrayscale;
pub use random_horizontal_flip::RandomHorizontalFlip;
pub use random_perspective::RandomPerspective;
pub use random_resized_crop::RandomResizedCrop;
pub use random_rotation::RandomRotation;
pub use random_vertical_flip::RandomVerticalFlip;
pub use resize::Resize;
pub use to_dtype::ToDtype;

/// An operation as data.
trait Data: Sized {
    const DECLARATION: &'static Declaration;

    /// The operation with these values of its declared keys.
    fn read(values: &Values) -> Self;

    /// The value of each declared key, in the order of the declaration.
    fn values(&self) -> Vec<Value>;

    /// Height and width of the result for those of the input; `None`: they depend on the picture.
    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        input
    }

    /// Checks what the declaration cannot say, and changes what its [`super::Gives`] declares to
    /// follow from a key: element type, channels and layout.
    fn follow(&self, _sample: &mut SampleType) -> Result<(), Fault> {
        Ok(())
    }
}

macro_rules! operations {
    ($($type:ident),+ $(,)?) => {
        /// One step of a recipe. Sizes are in pixels.
        ///
        /// Random operations draw from a stream of their own, [`crate::random::Draws`] with the
        /// operation's index in the recipe, in the order that each type gives: another
        /// implementation that draws so gets the same picture.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Operation {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $type($type)),+
        }

        /// The declarations of all operations, in the order of the documentation.
        pub const DECLARATIONS: &[&Declaration] = &[$($type::DECLARATION),+];

        impl Operation {
            /// What is known of the operation without its values.
            pub fn declaration(&self) -> &'static Declaration {
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

            /// Height and width of the result for those of the input. `None` as an input: not
            /// known; as a result: they depend on the picture.
            pub fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
                match self {
                    $(Self::$type(it) => it.size(input)),+
                }
            }

            pub(super) fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
                match self {
                    $(Self::$type(it) => it.follow(sample)),+
                }
            }

            /// The operation of this name with these values; `None` for an unknown name.
            pub(super) fn read(name: &str, values: &Values) -> Option<Self> {
                $(if name == $type::DECLARATION.name {
                    return Some(Self::$type($type::read(values)));
                })+
                None
            }
        }

        $(impl From<$type> for Operation {
            fn from(operation: $type) -> Self {
                Self::$type(operation)
            }
        })+
    };
}

// The registry, in the order of the documentation.
operations! {
    Decode,
    Resize,
    CenterCrop,
    RandomResizedCrop,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    RandomRotation,
    RandomPerspective,
    Grayscale,
    RandomGrayscale,
    ColorJitter,
    ToDtype,
    Normalize,
    Layout,
}

impl Operation {
    /// The name in a recipe file.
    pub fn name(&self) -> &'static str {
        self.declaration().name
    }

    /// Whether it has random parameters.
    pub fn is_random(&self) -> bool {
        self.declaration().is_random()
    }
}
