//! The pictures that are measured, and their random crops.

use anyhow::Context;
use meetpoint_format::checksum::crc32c;
use meetpoint_format::random::{DrawKey, Draws};
use meetpoint_jpeg::{self as jpeg, Form};
use meetpoint_jpeg_benches::{encoded_picture, jpeg_files};
use meetpoint_kernels::{ImageInfo, Region, SampleId, crop, probe};
use std::path::Path;

/// The recipe of the rows named "sample".
pub(crate) const RECIPE: &str = "[[operation]]\nname = \"decode\"\n\
     [[operation]]\nname = \"random_resized_crop\"\nsize = 224\n\
     [[operation]]\nname = \"random_horizontal_flip\"\n";

/// Side of the recipe's result in pixels.
#[cfg(feature = "libjpeg-turbo")]
pub(crate) const SIDE: u32 = 224;

/// Seed of the random parameters.
const SEED: u64 = 7;

/// Name of the set of the given pictures.
pub(crate) const GIVEN: &str = "files";

/// Some pictures.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) pictures: Vec<Picture>,
}

/// A picture and what is stored beside it.
pub(crate) struct Picture {
    pub(crate) name: String,
    pub(crate) encoded: Vec<u8>,
    pub(crate) info: ImageInfo,
    pub(crate) entry_points: Vec<u8>,
    pub(crate) crc32c: u32,
    /// Its coefficient forms.
    pub(crate) fast: Vec<u8>,
    pub(crate) compact: Vec<u8>,
    /// Its index in the set, which selects the random parameters.
    sample: u64,
}

impl Picture {
    fn new(name: String, encoded: Vec<u8>, sample: u64) -> anyhow::Result<Self> {
        let info = probe(&encoded).with_context(|| format!("reading the header of {name}"))?;
        let failed = |what: &str| format!("{what} of {name}");
        let entry_points = jpeg::entry_points(&encoded, jpeg::Spacing::McuRow)
            .with_context(|| failed("the entry points"))?
            .unwrap_or_default();
        let form =
            |form| jpeg::to_form(&encoded, form).with_context(|| failed("the coefficient form"));
        let (fast, compact) = (form(Form::Fast)?, form(Form::Compact)?);
        let crc32c = crc32c(&encoded);
        Ok(Self { name, encoded, info, entry_points, crc32c, fast, compact, sample })
    }

    /// Seeds the random parameters of a sweep.
    pub(crate) fn id(&self, sweep: u32) -> SampleId {
        SampleId { seed: SEED, epoch: sweep, sample: self.sample }
    }

    /// The random parameters of `RECIPE` in a sweep: the crop, and whether it is flipped.
    pub(crate) fn draw(&self, sweep: u32) -> (Region, bool) {
        let SampleId { seed, epoch, sample } = self.id(sweep);
        let draws = |operation| Draws::new(DrawKey { seed, epoch, sample, operation });
        let (width, height) = (self.info.width, self.info.height);
        let bounds = ((0.08, 1.0), (3.0 / 4.0, 4.0 / 3.0));
        let region = crop::random_region(&mut draws(1), width, height, bounds.0, bounds.1);
        (region, draws(2).chance(0.5))
    }
}

impl Set {
    /// Pixels of all pictures.
    pub(crate) fn pixels(&self) -> u64 {
        let pixels = |info: ImageInfo| u64::from(info.width) * u64::from(info.height);
        self.pictures.iter().map(|picture| pixels(picture.info)).sum()
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes_of(|picture| &picture.encoded)
    }

    /// Sum over all pictures of a size in bytes.
    pub(crate) fn bytes_of(&self, of: fn(&Picture) -> &[u8]) -> usize {
        self.pictures.iter().map(|picture| of(picture).len()).sum()
    }
}

/// The pictures of a folder, or `generated` generated ones.
pub(crate) fn given(dir: Option<&Path>, most: u32, generated: u32) -> anyhow::Result<Set> {
    let files = match dir {
        Some(dir) => jpeg_files(dir)?
            .into_iter()
            .map(|(path, bytes)| (path.display().to_string(), bytes))
            .collect(),
        None => (0..generated)
            .map(|index| Ok((format!("generated {index}"), encoded_picture(index)?)))
            .collect::<anyhow::Result<Vec<_>>>()?,
    };
    let files = files.into_iter().take(most as usize).zip(0..);
    let pictures = files.map(|((name, bytes), sample)| Picture::new(name, bytes, sample));
    Ok(Set { name: GIVEN, pictures: pictures.collect::<anyhow::Result<_>>()? })
}

/// Sets derived from the given one: the same pictures encoded again, 4:2:0 at quality 90.
#[cfg(feature = "libjpeg-turbo")]
pub(crate) fn others(given: &Set) -> anyhow::Result<Vec<Set>> {
    use meetpoint_jpeg_benches::libjpeg::{Encoding, Mode, Turbo};
    let mut turbo = Turbo::new();
    let mut pixels = meetpoint_kernels::Picture::default();
    let mut pictures = Vec::new();
    for picture in &given.pictures {
        // Pictures that libjpeg does not decode are also removed from the given set, and named
        // there.
        if turbo.decode(&picture.encoded, Mode::default(), &mut pixels).is_ok() {
            let encoded = turbo.encode(&pixels, Encoding::USUAL)?;
            pictures.push(Picture::new(picture.name.clone(), encoded, picture.sample)?);
        }
    }
    Ok(vec![Set { name: "4:2:0 q90", pictures }])
}

/// Without libjpeg there is none.
#[cfg(not(feature = "libjpeg-turbo"))]
pub(crate) fn others(_: &Set) -> anyhow::Result<Vec<Set>> {
    Ok(Vec::new())
}

/// Writes a list of files, each with its crops: `[{"file", "draws": [[x, y, width, height,
/// flip]]}]`.
pub(crate) fn write_boxes(set: &Set, sweeps: u32, path: &Path) -> anyhow::Result<()> {
    let list: Vec<_> = set
        .pictures
        .iter()
        .map(|picture| {
            let draws: Vec<_> = (0..sweeps)
                .map(|sweep| picture.draw(sweep))
                .map(|(region, flip)| (region.x, region.y, region.width, region.height, flip))
                .collect();
            serde_json::json!({ "file": picture.name, "draws": draws })
        })
        .collect();
    let text = serde_json::to_string(&list)?;
    std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}
