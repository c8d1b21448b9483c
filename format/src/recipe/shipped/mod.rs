//! Recipes that come with the program: published recipes of trainings and experiments, with names
//! and versions.
//!
//! Each has a TOML file and a line in [`SHIPPED`]. A released version never changes: if an original
//! changes, the recipe gets another version.
//!
//! In reading order: this file (the list, and finding a recipe by its name), `change` (a recipe
//! with other values).

mod change;
#[cfg(test)]
mod tests;

use super::{Recipe, RecipeError};
use meetpoint_diagnose::{Diagnose, Remedy, nearest};
use std::fmt;

pub use change::{Change, ChangeError};

/// A recipe that comes with the program.
#[derive(Debug, PartialEq, Eq)]
pub struct ShippedRecipe {
    /// Its name; recipes for evaluation end in `-eval`.
    pub name: &'static str,
    /// Its version, from 1.
    pub version: u32,
    /// The purpose.
    pub about: &'static str,
    /// The source of the original.
    pub source: &'static str,
    /// The recipe file.
    pub toml: &'static str,
}

/// The entry of a recipe, whose file has its name and version.
macro_rules! shipped {
    ($name:literal @ $version:literal, $about:literal, $source:literal) => {
        ShippedRecipe {
            name: $name,
            version: $version,
            about: $about,
            source: $source,
            toml: include_str!(concat!($name, "@", $version, ".toml")),
        }
    };
}

/// All recipes, by name and ascending version.
pub const SHIPPED: &[ShippedRecipe] = &[
    shipped!(
        "ade20k-segmentation" @ 1,
        "semantic segmentation at 512 pixels, with masks in the column `mask`",
        "mmsegmentation 1.2, configs/_base_/datasets/ade20k.py, on 8-bit pixels and without \
         cat_max_ratio"
    ),
    shipped!(
        "ade20k-segmentation-eval" @ 1,
        "resize of the shorter side to 512 pixels, and centre crop of 512 x 512",
        "mmsegmentation 1.2, which evaluates whole pictures"
    ),
    shipped!(
        "cifar" @ 1,
        "CIFAR-10: padded crop and flip",
        "kuangliu/pytorch-cifar, main.py"
    ),
    shipped!("cifar-eval" @ 1, "CIFAR-10: no augmentation", "kuangliu/pytorch-cifar, main.py"),
    shipped!(
        "coco-detection" @ 1,
        "SSD300 detection, with boxes in the column `boxes`",
        "torchvision 0.29, references/detection, preset ssd; the resize to 300 is the model's, \
         with Pillow's filter"
    ),
    shipped!(
        "coco-detection-eval" @ 1,
        "SSD300 detection: only the resize",
        "torchvision 0.29, references/detection; the resize to 300 is the model's, with Pillow's \
         filter"
    ),
    shipped!(
        "convnext" @ 1,
        "ConvNeXt on ImageNet: RandAugment, erasing, mixup and cutmix",
        "facebookresearch/ConvNeXt, main.py and datasets.py, with timm before 1.0.31"
    ),
    shipped!(
        "convnext-eval" @ 1,
        "ConvNeXt evaluated at 224 pixels",
        "facebookresearch/ConvNeXt, datasets.py"
    ),
    shipped!(
        "crumpets" @ 1,
        "the preset TRAIN of crumpets (one warp, gamma, contrast), with other distributions",
        "crumpets 3.0.0a5, presets.py"
    ),
    shipped!(
        "crumpets" @ 2,
        "the preset TRAIN of crumpets: one warp, gamma, contrast; its distributions",
        "crumpets 3.0.0a5, presets.py; pixels of the warp are Pillow's"
    ),
    shipped!(
        "crumpets-all" @ 1,
        "the preset ALL of crumpets: as TRAIN, with noise and blur in a random order",
        "crumpets 3.0.0a5, presets.py; pixels of the warp are Pillow's"
    ),
    shipped!("crumpets-eval" @ 1, "the preset VAL of crumpets", "crumpets 3.0.0a5, presets.py"),
    shipped!(
        "deit" @ 1,
        "DeiT on ImageNet: RandAugment, erasing, mixup and cutmix",
        "facebookresearch/deit, main.py and datasets.py, with timm before 1.0.31"
    ),
    shipped!(
        "deit-eval" @ 1,
        "DeiT evaluated at 224 pixels",
        "facebookresearch/deit, datasets.py"
    ),
    shipped!(
        "deit3" @ 1,
        "DeiT III on ImageNet: 3-Augment, mixup and cutmix",
        "facebookresearch/deit, its page on DeiT III and augment.py, with timm before 1.0.31"
    ),
    shipped!(
        "deit3-eval" @ 1,
        "DeiT III evaluated at 224 pixels, without a margin",
        "facebookresearch/deit, its page on DeiT III and datasets.py"
    ),
    shipped!(
        "dinov2" @ 1,
        "DINOv2 on ImageNet: two crops of 224 pixels in the columns `global_1` and `global_2`, \
         eight of 96 in `local`",
        "facebookresearch/dinov2, data/augmentations.py and configs/ssl_default_config.yaml"
    ),
    shipped!(
        "dinov2-eval" @ 1,
        "DINOv2 evaluated at 224 pixels",
        "facebookresearch/dinov2, data/transforms.py"
    ),
    shipped!(
        "imagenet-resnet" @ 1,
        "ResNet on ImageNet, weights V1: crop and flip",
        "torchvision 0.29, references/classification"
    ),
    shipped!(
        "imagenet-resnet" @ 2,
        "ResNet on ImageNet, weights V2: TrivialAugment, erasing, mixup and cutmix at 176 pixels",
        "torchvision 0.29, references/classification, --use-v2 --auto-augment ta_wide \
         --random-erase 0.1 --mixup-alpha 0.2 --cutmix-alpha 1 --train-crop-size 176"
    ),
    shipped!(
        "imagenet-resnet-eval" @ 1,
        "ResNet evaluated at 224 pixels, as weights V1",
        "torchvision 0.29, references/classification"
    ),
    shipped!(
        "imagenet-resnet-eval" @ 2,
        "ResNet evaluated at 224 pixels, as weights V2",
        "torchvision 0.29, references/classification, --val-resize-size 232"
    ),
    shipped!(
        "mae" @ 1,
        "pretraining of masked autoencoders: crop and flip",
        "facebookresearch/mae, main_pretrain.py"
    ),
    shipped!(
        "presto-cv" @ 1,
        "images of ImageNet: crop of 224 pixels from -1 to 1",
        "Isenko et al. 2022 (PRESTO), table 1; the crop comes before the type conversion"
    ),
    shipped!(
        "presto-cv-grey" @ 1,
        "the same in grey, which is computed before values are centred",
        "Isenko et al. 2022 (PRESTO), section on greyscale"
    ),
    shipped!(
        "presto-cv2-jpg" @ 1,
        "JPEG photographs of Cube++, as `presto-cv`",
        "Isenko et al. 2022 (PRESTO), table 1; the crop comes before the type conversion"
    ),
    shipped!(
        "presto-cv2-png" @ 1,
        "16-bit PNG photographs of Cube++, as `presto-cv`",
        "Isenko et al. 2022 (PRESTO), table 1; the crop comes before the type conversion"
    ),
    shipped!(
        "presto-flac" @ 1,
        "speech of LibriSpeech: 80 mel bands of 20 ms frames every 10 ms",
        "Isenko et al. 2022 (PRESTO), table 1; spectrograms are cut or padded to 15 s"
    ),
    shipped!(
        "presto-mp3" @ 1,
        "speech of Common Voice: 80 mel bands of 20 ms frames every 10 ms",
        "Isenko et al. 2022 (PRESTO), table 1; spectrograms are cut or padded to 5 s"
    ),
    shipped!(
        "presto-nilm" @ 1,
        "10 s of voltage and current: active power, RMS and CUSUM of 500 periods",
        "Isenko et al. 2022 (PRESTO), table 1, and cirquit/presto, cream_pipeline.py; signals \
         are NumPy files of 2 x 64000"
    ),
    shipped!(
        "presto-nlp" @ 1,
        "web pages of OpenWebText: visible text, byte-pair encoding, vectors of 768 elements, from \
         `tokenizer.json` and `embedding.npy` in the current folder",
        "Isenko et al. 2022 (PRESTO), table 1; documents are cut or padded to 1024 tokens, and \
         html_to_text takes the place of newspaper"
    ),
    shipped!(
        "rsb-a1" @ 1,
        "ResNet strikes back, 600 epochs at 224 pixels",
        "Wightman et al. 2021, table 2, and mmpretrain 1.2, configs/resnet; timm before 1.0.31"
    ),
    shipped!(
        "rsb-a2" @ 1,
        "ResNet strikes back, 300 epochs at 224 pixels",
        "Wightman et al. 2021, table 2, and mmpretrain 1.2, configs/resnet; timm before 1.0.31"
    ),
    shipped!(
        "rsb-a3" @ 1,
        "ResNet strikes back, 100 epochs at 160 pixels",
        "Wightman et al. 2021, table 2, and mmpretrain 1.2, configs/resnet; timm before 1.0.31"
    ),
    shipped!(
        "rsb-eval" @ 1,
        "ResNet strikes back, evaluated at 224 pixels",
        "Wightman et al. 2021, table 2: crop ratio 0.95"
    ),
    shipped!(
        "simclr" @ 1,
        "SimCLR on ImageNet: two crops of 224 pixels in the column `view`",
        "google-research/simclr, data_util.py, on 8-bit pixels and with Pillow's filters"
    ),
];

impl ShippedRecipe {
    /// The recipe.
    pub fn recipe(&self) -> Recipe {
        Recipe::from_toml(self.toml).expect("a test reads every recipe")
    }

    /// The recipe file, preceded by comments that describe it.
    pub fn file(&self) -> String {
        let Self { about, source, toml, .. } = self;
        format!("# {self}: {about}.\n# After {source}.\n{toml}")
    }
}

impl Recipe {
    /// The same recipe with other values of some keys.
    ///
    /// ```
    /// use meetpoint_format::recipe::find_shipped;
    ///
    /// let changes = ["num_classes=10".parse()?, "random_resized_crop.size=160".parse()?];
    /// let recipe = find_shipped("deit").unwrap().recipe().changed(&changes)?;
    /// assert_eq!(recipe.labels().unwrap().classes, 10);
    /// assert_eq!(recipe.output().unwrap().height, 160);
    /// # Ok::<(), meetpoint_format::recipe::ChangeError>(())
    /// ```
    pub fn changed(&self, changes: &[Change]) -> Result<Self, ChangeError> {
        if changes.is_empty() {
            return Ok(self.clone());
        }
        let text = change::apply(&self.to_toml(), changes)?;
        Self::from_toml(&text).map_err(|error| {
            // The position is in a text that the user has not seen.
            ChangeError::Refused(RecipeError { place: None, ..error })
        })
    }
}

/// `deit@1`.
impl fmt::Display for ShippedRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

/// The recipe called `deit@1`; without a version, the latest of that name.
///
/// ```
/// use meetpoint_format::recipe::{UnknownRecipe, find_shipped};
///
/// assert_eq!(find_shipped("imagenet-resnet@1")?.version, 1);
/// assert_eq!(find_shipped("imagenet-resnet")?.version, 2);
/// let error = find_shipped("imagenet-resnet@9").unwrap_err();
/// assert!(matches!(error, UnknownRecipe::Version { .. }));
/// # Ok::<(), UnknownRecipe>(())
/// ```
pub fn find_shipped(wanted: &str) -> Result<&'static ShippedRecipe, UnknownRecipe> {
    let (name, version) = match wanted.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (wanted, None),
    };
    let mut named = SHIPPED.iter().filter(|it| it.name == name);
    let Some(latest) = named.next_back() else {
        let names: Vec<&str> = SHIPPED.iter().map(|it| it.name).collect();
        return Err(UnknownRecipe::Name {
            wanted: wanted.to_owned(),
            nearest: nearest(name, &names),
        });
    };
    let Some(version) = version else { return Ok(latest) };
    let found = SHIPPED.iter().find(|it| it.name == name && it.version.to_string() == version);
    found.ok_or_else(|| UnknownRecipe::Version { wanted: wanted.to_owned(), latest })
}

/// Whether a text that names a recipe can only be the path of a file: it has a separator or ends
/// in `.toml`.
pub fn is_recipe_path(text: &str) -> bool {
    text.contains('/') || text.ends_with(".toml")
}

/// A name that no recipe has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownRecipe {
    /// No recipe has this name.
    #[error("no recipe {wanted:?} comes with Meetpoint")]
    Name {
        /// The requested value.
        wanted: String,
        /// The most similar name, if one is similar enough.
        nearest: Option<&'static str>,
    },
    /// The recipe has no such version.
    #[error("no recipe {wanted:?} comes with Meetpoint; the latest is {latest}")]
    Version {
        /// The requested value.
        wanted: String,
        /// The latest version.
        latest: &'static ShippedRecipe,
    },
}

impl Diagnose for UnknownRecipe {
    fn cause(&self) -> &'static str {
        "no_such_recipe"
    }

    fn remedy(&self) -> Option<Remedy> {
        let versions = |name: &str| {
            let found = SHIPPED.iter().filter(|it| it.name == name);
            found.map(ToString::to_string).collect::<Vec<_>>().join(" or ")
        };
        Some(match self {
            Self::Name { nearest: Some(near), .. } => {
                Remedy::advice(format!("did you mean `{near}`?"))
            }
            Self::Name { nearest: None, .. } => {
                let mut names: Vec<&str> = SHIPPED.iter().map(|it| it.name).collect();
                names.dedup();
                Remedy::advice(format!("choose one of {}", names.join(", ")))
            }
            Self::Version { latest, .. } => {
                Remedy::advice(format!("choose {}", versions(latest.name)))
            }
        })
    }
}
