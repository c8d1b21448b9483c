//! Tests of the binding to libjpeg.

use super::{Encoding, Mode, Turbo, TurboError};
use crate::{encoded_picture, generated_picture};
use meetpoint_jpeg::{Picture, Region};

#[test]
fn an_encoded_picture_decodes_to_its_size() {
    let picture = generated_picture(3);
    let mut turbo = Turbo::new();
    let file = turbo.encode(&picture, Encoding::USUAL).unwrap();
    let mut out = Picture::default();
    turbo.decode(&file, Mode::default(), &mut out).unwrap();
    assert_eq!((out.width, out.height), (picture.width, picture.height));
    let mode = Mode { scale_eighths: 4, ..Mode::default() };
    turbo.decode(&file, mode, &mut out).unwrap();
    assert_eq!((out.width, out.height), (picture.width / 2, picture.height / 2));
}

#[test]
fn a_region_of_a_picture_without_subsampling_is_a_part_of_the_whole() {
    let mut turbo = Turbo::new();
    let encoding = Encoding { luma_factors: (1, 1), ..Encoding::USUAL };
    let file = turbo.encode(&generated_picture(1), encoding).unwrap();
    let (mut whole, mut part) = (Picture::default(), Picture::default());
    turbo.decode(&file, Mode::default(), &mut whole).unwrap();
    let region = Region { x: 101, y: 77, width: 50, height: 40 };
    turbo.decode_region(&file, region, &mut part).unwrap();
    for y in 0..40 {
        let from = ((77 + y) * whole.width as usize + 101) * 3;
        assert_eq!(part.pixels[y * 150..][..150], whole.pixels[from..][..150]);
    }
}

#[test]
fn coefficients_do_not_depend_on_the_entropy_coding() {
    let mut turbo = Turbo::new();
    let picture = generated_picture(2);
    let file = turbo.encode(&picture, Encoding::USUAL).unwrap();
    let progressive = Encoding { progressive: true, ..Encoding::USUAL };
    let progressive = turbo.encode(&picture, progressive).unwrap();
    let planes = turbo.coefficients(&file).unwrap();
    assert_eq!(planes.len(), 3);
    assert!(planes == turbo.coefficients(&progressive).unwrap());
    let blocks: usize = planes.iter().map(|plane| plane.blocks.len()).sum();
    assert_eq!(turbo.read_coefficients(&file).unwrap(), blocks as u64);
}

#[test]
fn damage_and_invalid_files_are_distinguished() {
    let mut turbo = Turbo::new();
    let mut out = Picture::default();
    let file = encoded_picture(1).unwrap();
    let cut = &file[..file.len() / 2];
    let said = turbo.decode(cut, Mode::default(), &mut out);
    assert_eq!(said, Err(TurboError::Damaged));
    let said = turbo.decode(b"no picture", Mode::default(), &mut out).unwrap_err();
    assert!(matches!(said, TurboError::Refused(_)), "{said}");
    turbo.decode(&file, Mode::default(), &mut out).unwrap();
}
