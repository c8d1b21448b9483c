//! Tiles in rows and columns on one canvas.

use super::PreviewError;
use image::imageops::{FilterType, overlay, resize};
use image::{ImageFormat, Rgb, RgbImage};
use std::io::Cursor;

/// Minimum longest side of a tile, in pixels; smaller results, such as CIFAR's, are enlarged.
const TILE_LEAST: u32 = 128;
/// Pixels between tiles with one picture; tiles with several are further apart.
const GAP: u32 = 4;
const GAP_OF_SEVERAL: u32 = 12;
/// Maximum side of the canvas, and its maximum number of pixels.
const SIDE_MAX: u32 = 20_000;
const PIXELS_MAX: u64 = 1 << 28;
/// Colour between tiles.
pub(super) const BACKGROUND: Rgb<u8> = Rgb([255; 3]);

/// Integer magnification for pictures whose longer side is `side`.
pub(super) fn scale(side: u32) -> u32 {
    TILE_LEAST.div_ceil(side.max(1))
}

/// A canvas with a grid of tiles.
#[derive(Debug)]
pub(super) struct Sheet {
    canvas: RgbImage,
    /// Width of the tiles of the first column.
    first: u32,
    /// Width and height of the other tiles.
    tile: (u32, u32),
    gap: u32,
}

impl Sheet {
    /// Creates a sheet for results of a given size in `columns`, after a first column whose width
    /// may differ. Refuses a sheet that is too large.
    pub(super) fn new(
        rows: usize,
        columns: usize,
        first: u32,
        tile: (u32, u32),
    ) -> Result<Self, PreviewError> {
        let gap = if first == tile.0 { GAP } else { GAP_OF_SEVERAL };
        let side = |count: usize, tile: u32| {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            count.saturating_mul(u64::from(tile) + u64::from(gap)).saturating_add(gap.into())
        };
        let width = side(columns, tile.0).saturating_add(u64::from(first) + u64::from(gap));
        let [width, height] =
            [width, side(rows, tile.1)].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
        if width.max(height) > SIDE_MAX || u64::from(width) * u64::from(height) > PIXELS_MAX {
            return Err(PreviewError::TooLarge);
        }
        let canvas = RgbImage::from_pixel(width, height, BACKGROUND);
        Ok(Self { canvas, first, tile, gap })
    }

    /// Draws a picture centred in a tile, scaled to fit.
    pub(super) fn put(&mut self, row: usize, column: usize, picture: &RgbImage) {
        let (width, height) = picture.dimensions();
        let (left, tile_width) = match column {
            0 => (0, self.first),
            _ => {
                let before = (column as i64 - 1) * i64::from(self.tile.0 + self.gap);
                (i64::from(self.first + self.gap) + before, self.tile.0)
            }
        };
        let tile_height = self.tile.1;
        let fit = |side: u32, by: f64| ((f64::from(side) * by).round() as u32).max(1);
        let by = (f64::from(tile_width) / f64::from(width.max(1)))
            .min(f64::from(tile_height) / f64::from(height.max(1)));
        let size = (fit(width, by).min(tile_width), fit(height, by).min(tile_height));
        let top = row as i64 * i64::from(tile_height + self.gap);
        let middle = |start: i64, tile: u32, side: u32| {
            start + i64::from(self.gap) + i64::from((tile - side) / 2)
        };
        let x = middle(left, tile_width, size.0);
        let y = middle(top, tile_height, size.1);
        if size == (width, height) {
            overlay(&mut self.canvas, picture, x, y);
        } else {
            let fitted = resize(picture, size.0, size.1, FilterType::Triangle);
            overlay(&mut self.canvas, &fitted, x, y);
        }
    }

    /// The PNG, and its width and height.
    pub(super) fn finish(self) -> Result<(Vec<u8>, (u32, u32)), PreviewError> {
        let mut file = Cursor::new(Vec::new());
        self.canvas.write_to(&mut file, ImageFormat::Png)?;
        Ok((file.into_inner(), self.canvas.dimensions()))
    }
}

#[cfg(test)]
mod tests {
    use super::{BACKGROUND, GAP, GAP_OF_SEVERAL, Sheet, scale};
    use image::{Rgb, RgbImage};

    #[test]
    fn tiles_are_drawn_in_rows_and_columns() {
        let mut sheet = Sheet::new(2, 2, 128, (128, 64)).unwrap();
        let red = Rgb([255, 0, 0]);
        sheet.put(1, 2, &RgbImage::from_pixel(128, 64, red));
        // Taller than the tile: scaled by its height.
        sheet.put(0, 0, &RgbImage::from_pixel(64, 128, red));
        let (png, size) = sheet.finish().unwrap();
        assert_eq!(size, (3 * (128 + GAP) + GAP, 2 * (64 + GAP) + GAP));
        let read = image::load_from_memory(&png).unwrap().into_rgb8();
        assert_eq!(read.get_pixel(size.0 - GAP - 1, size.1 - GAP - 1), &red);
        assert_eq!(read.get_pixel(size.0 - 1, size.1 - 1), &BACKGROUND);
        let drawn = (0..128).filter(|x| read.get_pixel(GAP + x, GAP + 9) == &red).count();
        assert_eq!(drawn, 32);
    }

    #[test]
    fn tiles_of_several_pictures_are_spaced_further_behind_a_narrow_column() {
        let mut sheet = Sheet::new(1, 2, 64, (200, 64)).unwrap();
        let red = Rgb([255, 0, 0]);
        sheet.put(0, 2, &RgbImage::from_pixel(200, 64, red));
        let (png, size) = sheet.finish().unwrap();
        let gap = GAP_OF_SEVERAL;
        assert_eq!(size, (64 + 2 * 200 + 4 * gap, 64 + 2 * gap));
        let read = image::load_from_memory(&png).unwrap().into_rgb8();
        let drawn: Vec<u32> = (0..size.0).filter(|x| read.get_pixel(*x, gap) == &red).collect();
        assert_eq!(drawn, (64 + 200 + 3 * gap..size.0 - gap).collect::<Vec<_>>());
    }

    #[test]
    fn small_results_are_enlarged() {
        assert_eq!([scale(32), scale(100), scale(128), scale(500)], [4, 2, 1, 1]);
    }

    #[test]
    fn a_sheet_with_too_many_pixels_is_refused() {
        let refused = |rows, columns, tile| Sheet::new(rows, columns, tile, (tile, tile)).is_err();
        assert!(refused(60, 31, 4096));
        // The sides are short enough, but there are too many pixels.
        assert!(refused(4, 3, 4096));
        assert!(!refused(64, 32, 256));
    }
}
