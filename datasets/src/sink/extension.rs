//! Determines the extension of a sample from its bytes.

use crate::source::ContentKind;
use meetpoint_kernels::ImageFormat;

/// Extensions of keys, grouped by format; the first of each group is the one that is assigned.
const FAMILIES: [&[&str]; 12] = [
    &["jpg", "jpeg", "jpe", "jfif"],
    &["png"],
    &["webp"],
    &["bmp", "dib"],
    &["gif"],
    &["tiff", "tif"],
    &["wav", "wave"],
    &["flac"],
    &["ogg", "oga", "opus"],
    &["mp3"],
    &["txt", "text"],
    &["bin"],
];

/// The extension of a sample, in lower case and without a dot: from its first bytes if they
/// identify the format, else that of the key if it is short, else `txt` or `bin`.
pub(super) fn extension_of(key: &str, file: &[u8], kind: ContentKind) -> String {
    if let Some(known) = by_content(file) {
        return known.to_owned();
    }
    if let Some((_, extension)) = split(key) {
        let family = FAMILIES.iter().find(|family| family.contains(&extension.as_str()));
        return family.map_or(extension, |family| family[0].to_owned());
    }
    if kind == ContentKind::Text { "txt" } else { "bin" }.to_owned()
}

/// Splits a key before the extension of its last name; the extension in lower case.
pub(super) fn split(key: &str) -> Option<(&str, String)> {
    let name = key.rsplit('/').next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    let is_short = !stem.is_empty()
        && (1..=8).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_short.then(|| (&key[..key.len() - extension.len() - 1], extension.to_ascii_lowercase()))
}

/// The extension for the format that the first bytes identify.
pub(super) fn by_content(file: &[u8]) -> Option<&'static str> {
    if let Some(format) = ImageFormat::of(file) {
        return match format {
            ImageFormat::Jpeg => Some("jpg"),
            ImageFormat::Coefficients => Some("bin"),
            ImageFormat::Png => Some("png"),
            ImageFormat::WebP => Some("webp"),
            ImageFormat::Bmp => Some("bmp"),
            ImageFormat::Gif => Some("gif"),
            ImageFormat::Tiff => Some("tiff"),
            ImageFormat::Pnm if file.starts_with(b"P5") => Some("pgm"),
            ImageFormat::Pnm => Some("ppm"),
        };
    }
    let begins = |magic: &[u8]| file.starts_with(magic);
    if begins(b"RIFF") && file.get(8..12) == Some(b"WAVE") {
        Some("wav")
    } else if begins(b"fLaC") {
        Some("flac")
    } else if begins(b"OggS") {
        Some("ogg")
    } else if begins(b"ID3") {
        Some("mp3")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_takes_precedence_over_the_name() {
        let image = |key, file: &[u8]| extension_of(key, file, ContentKind::Image);
        assert_eq!(image("a/b.JPEG", b"\xff\xd8\xff\xe0"), "jpg");
        assert_eq!(image("a/b.JPEG", b"\x89PNG\r\n\x1a\n"), "png");
        assert_eq!(image("a/b.JPEG", b"?"), "jpg");
        assert_eq!(image("a/b.JXL", b"?"), "jxl");
        assert_eq!(image("a.b/c", b"?"), "bin");
        assert_eq!(extension_of("c", b"words", ContentKind::Text), "txt");
    }

    #[test]
    fn only_short_names_with_a_letter_are_extensions() {
        assert_eq!(split("a/b.JPEG"), Some(("a/b", "jpeg".to_owned())));
        assert_eq!(split("a.x/b"), None);
        assert_eq!(split("v1.25"), None);
        assert_eq!(split(".hidden"), None);
        assert_eq!(split("a.b c"), None);
    }
}
