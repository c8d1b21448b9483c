//! Why an unsupported type of JPEG is refused, and the remedy.

/// Arithmetic coding. Changing the entropy coding of a file changes no pixel.
pub(super) const ARITHMETIC: &str = "arithmetic coding is not supported; rewrite the file without \
     loss with \"jpegtran -copy all -optimize -outfile NEW.jpg OLD.jpg\"";

/// Frames of a precision other than 8 bits.
pub(super) const NOT_8_BITS: &str = "only 8 bits a sample are supported; convert the file to a \
     JPEG of 8 bits or to a PNG, with \"magick OLD.jpg -depth 8 NEW.png\" for example";

const LOSSLESS: &str = "lossless coding is not supported; convert the file to a PNG, with \"magick \
     OLD.jpg NEW.png\" for example";

const HIERARCHICAL: &str = "hierarchical coding is not supported; convert the file to a PNG with \
     the program that wrote it";

/// Why a frame with a marker other than SOF0, SOF1 and SOF2 is refused (T.81, table B.1).
pub(super) fn coding(marker: u8) -> &'static str {
    match marker & 15 {
        3 => LOSSLESS,
        9 | 10 => ARITHMETIC,
        11 => "lossless arithmetic coding is not supported; convert the file to a PNG",
        _ => HIERARCHICAL,
    }
}
