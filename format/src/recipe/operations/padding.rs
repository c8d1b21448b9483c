//! `padding` and `padding_mode`: the keys of operations that add pixels around a picture.

use crate::recipe::declaration::{Key, KeyType, SIDE_MAX};
use crate::recipe::value::{Value, Values};
use crate::recipe::{Padding, PaddingMode};
use std::borrow::Cow;

const NAME: &str = "padding";
const MODE: &str = "padding_mode";
const KIND: KeyType = KeyType::Wholes { counts: &[1, 2, 4], least: 0, most: SIDE_MAX };
const ABOUT: &str =
    "pixels on every side; left and right, top and bottom; or left, top, right, bottom";

/// The declaration of `padding` as a required key.
pub(super) const fn required_key() -> Key {
    Key::required(NAME, KIND, Value::Wholes(Cow::Borrowed(&[4])), ABOUT)
}

/// The declaration of `padding` as a key that defaults to none.
pub(super) const fn key() -> Key {
    Key::optional(NAME, KIND, Value::Wholes(Cow::Borrowed(&[0, 0, 0, 0])), ABOUT)
}

/// The declaration of `padding_mode`.
pub(super) const fn mode_key() -> Key {
    let kind = KeyType::Word { choices: PaddingMode::NAMES };
    let default = Value::Word(PaddingMode::Constant.name());
    let about = "the content of the padding: `fill`, the repeated border, or the \
                 picture mirrored without or with its border";
    Key::optional(MODE, kind, default, about)
}

/// The value of `padding`.
pub(super) fn read(values: &Values) -> Padding {
    let [left, top, right, bottom] = match *values.wholes(NAME) {
        [all] => [all; 4],
        [across, down] => [across, down, across, down],
        [left, top, right, bottom] => [left, top, right, bottom],
        ref other => panic!("`{NAME}` declares {} numbers", other.len()),
    };
    Padding { left, top, right, bottom }
}

/// The value of `padding_mode`.
pub(super) fn read_mode(values: &Values) -> PaddingMode {
    values.named(MODE, PaddingMode::from_name)
}

/// The value of the key `padding`.
pub(super) fn value(padding: Padding) -> Value {
    let Padding { left, top, right, bottom } = padding;
    Value::Wholes(vec![left, top, right, bottom].into())
}
