//! Refuses forms that exceed the free space or the memory, before anything is written.

use super::choice::Choice;
use crate::Error;
use crate::vocabulary::{Codec, Form, Point};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::{ImageInfo, probe};
use meetpoint_prepare::codec::compressed_bytes_max;
use meetpoint_storage::MemoryLimit;
use std::path::Path;

/// Size of a chosen file, and of its picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileSize {
    bytes: u64,
    /// `None` for a file with an invalid header; preparing it fails with an error.
    picture: Option<ImageInfo>,
}

/// The sizes of the chosen files.
pub(super) fn file_sizes(choice: &Choice) -> Result<Vec<FileSize>, Error> {
    (0..choice.len())
        .map(|index| {
            let file = choice.file(index)?;
            Ok(FileSize { bytes: file.len() as u64, picture: probe(&file).ok() })
        })
        .collect()
}

/// Maximum bytes of a sample at a point, before compression.
fn raw_bytes_max(recipe: &Recipe, point: &Point, size: FileSize) -> u64 {
    let Some(ImageInfo { width, height, .. }) = size.picture else { return size.bytes };
    let pixels = u64::from(width) * u64::from(height);
    match point.form {
        Form::Files | Form::Packed => size.bytes,
        // Three components per pixel, with a coefficient of two bytes each.
        Form::CoefficientsFast | Form::CoefficientsCompact => size.bytes + 6 * pixels,
        Form::Prepared | Form::Jpeg => {
            let operations = &recipe.operations()[..point.operations];
            let whole = Some((height, width));
            let sides =
                operations.iter().fold(whole, |sides, operation| operation.size(sides).or(sides));
            let (height, width) = sides.unwrap_or((height, width));
            let beginning = super::offline::beginning(recipe, point);
            let result = beginning.as_ref().unwrap_or(recipe).result();
            result.tensor((height, width)).bytes() as u64
        }
    }
}

/// Refuses points that exceed the free space of `folder`, or whose samples exceed the available
/// memory. One point is stored at a time.
pub(super) fn check(
    recipe: &Recipe,
    points: &[Point],
    codecs: &[Codec],
    sizes: &[FileSize],
    folder: &Path,
) -> Result<(), Error> {
    let found = rustix::fs::statvfs(folder).map_err(|source| Error::Io {
        action: "open",
        path: folder.to_path_buf(),
        source: source.into(),
    })?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let memory = MemoryLimit::of_this_process();
    let samples = sizes.len() as u64;
    for point in points {
        let raw = sizes.iter().map(|&size| raw_bytes_max(recipe, point, size));
        let (total, most) = raw.fold((0, 0), |(total, most), raw| (total + raw, raw.max(most)));
        let needed = codecs.iter().map(|&codec| {
            let header = compressed_bytes_max(codec, 0) * samples;
            compressed_bytes_max(codec, total).saturating_add(header)
        });
        let needed = needed.max().unwrap_or(total);
        let point = point.to_string();
        if needed > free {
            return Err(Error::Space {
                folder: folder.to_path_buf(),
                samples,
                point,
                needed,
                free,
            });
        }
        // The cache, and a sample being compressed.
        let needed = total.saturating_add(2 * most);
        let available = memory.available_bytes;
        if needed > available {
            let file = memory.file;
            return Err(Error::Memory { samples, point, needed, available, file });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_point_follow_from_its_operations() {
        let recipe = Recipe::from_toml(
            "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\nsize = 10\n\
             [[operation]]\nname = \"grayscale\"\n\
             [[operation]]\nname = \"to_dtype\"\ndtype = \"float32\"\n",
        )
        .unwrap();
        let format = meetpoint_kernels::ImageFormat::Jpeg;
        let picture = Some(ImageInfo { format, width: 200, height: 100 });
        let size = FileSize { bytes: 5000, picture };
        let prepared =
            |operations| Point { form: Form::Prepared, operations, operation: "x".into() };
        let bytes = |point| raw_bytes_max(&recipe, &point, size);
        assert_eq!(bytes(Point::encoded(Form::Packed)), 5000);
        assert_eq!([1, 2, 3, 4].map(|it| bytes(prepared(it))), [60_000, 600, 200, 800]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_figures() {
        let recipe = Recipe::from_toml("[[operation]]\nname = \"decode\"\n").unwrap();
        let size = FileSize { bytes: u64::MAX / 4, picture: None };
        let points = [Point::encoded(Form::Packed)];
        let folder = tempfile::tempdir().unwrap();
        let refused = check(&recipe, &points, &[Codec::None], &[size], folder.path());
        let Err(Error::Space { needed, samples: 1, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(needed, u64::MAX / 4);
    }
}
