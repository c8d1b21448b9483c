//! Values of keys of policies, of erasing and of mixing.

named!(AugmentPolicy { Imagenet = "imagenet", Cifar10 = "cifar10", Svhn = "svhn" });
named!(TimmInterpolation { Random = "random", Bilinear = "bilinear", Bicubic = "bicubic" });
named!(ErasingMode { Constant = "const", Rand = "rand", Pixel = "pixel" });
named!(MixMode { Batch = "batch", Elem = "elem", Pair = "pair" });
named!(MixPartner { Previous = "previous", Mirrored = "mirrored" });
named!(CutBox { Torchvision = "torchvision", Timm = "timm_1.0.31" });

/// The dataset for which the pairs of [`crate::recipe::AutoAugment`] were learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AugmentPolicy {
    /// ImageNet.
    Imagenet,
    /// CIFAR-10.
    Cifar10,
    /// Street View House Numbers.
    Svhn,
}

/// How the warps of [`crate::recipe::TimmRandAugment`] compute a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimmInterpolation {
    /// One of the others, drawn for each warp.
    Random,
    /// As [`crate::recipe::WarpInterpolation::Bilinear`].
    Bilinear,
    /// As [`crate::recipe::WarpInterpolation::Bicubic`].
    Bicubic,
}

/// What replaces the elements of an erased rectangle, with timm's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasingMode {
    /// A value.
    Constant,
    /// One standard normal number for each channel: that of the next draw.
    Rand,
    /// A standard normal number for each element, from a field that is drawn.
    Pixel,
}

/// Which samples of a batch are mixed with the same random parameters, with timm's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MixMode {
    /// All samples.
    Batch,
    /// Each sample has its own.
    Elem,
    /// Each sample shares them with its mirrored partner.
    Pair,
}

/// The partner with which a sample of a batch is mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MixPartner {
    /// The previous sample, for the first the last, as in torchvision.
    Previous,
    /// The sample at the mirrored position in the batch, as in timm.
    Mirrored,
}

/// Whose definition determines the pasted rectangle from lambda.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutBox {
    /// That of torchvision, and of timm before 1.0.31: sides are even numbers.
    Torchvision,
    /// That of timm 1.0.31.
    Timm,
}
