//! The natural order of files: `file2` before `file10`.

use std::cmp::Ordering;

/// Compares two `/`-separated paths, folder by folder, in natural order.
///
/// Runs of ASCII digits compare by value, everything else character by character in lower case.
/// Names that are equal in this order are distinguished by leading zeros (fewer first) and then by
/// their bytes (`A` before `a`), so that the order is total: only equal paths compare equal.
pub fn natural_order(left: &str, right: &str) -> Ordering {
    let mut lefts = left.split('/');
    let mut rights = right.split('/');
    loop {
        let order = match (lefts.next(), rights.next()) {
            (Some(left), Some(right)) => compare_names(left, right).then_with(|| left.cmp(right)),
            (None, None) => return Ordering::Equal,
            (left, right) => left.is_some().cmp(&right.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn compare_names(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left, right);
    // Leading zeros count only when nothing else differs.
    let mut zeros = Ordering::Equal;
    loop {
        let order = match (left.chars().next(), right.chars().next()) {
            (None, None) => return zeros,
            (Some(l), Some(r)) if l.is_ascii_digit() && r.is_ascii_digit() => {
                let (left_zeros, left_digits) = take_number(&mut left);
                let (right_zeros, right_digits) = take_number(&mut right);
                zeros = zeros.then(left_zeros.cmp(&right_zeros));
                let by_length = left_digits.len().cmp(&right_digits.len());
                by_length.then_with(|| left_digits.cmp(right_digits))
            }
            (Some(l), Some(r)) => {
                (left, right) = (&left[l.len_utf8()..], &right[r.len_utf8()..]);
                compare_letters(l, r)
            }
            (left, right) => left.is_some().cmp(&right.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Compares two characters in lower case, which may consist of several characters.
fn compare_letters(left: char, right: char) -> Ordering {
    if left.is_ascii() && right.is_ascii() {
        return left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase());
    }
    left.to_lowercase().cmp(right.to_lowercase())
}

/// Removes a run of digits from the front; returns the number of leading zeros and the digits after
/// them.
fn take_number<'t>(text: &mut &'t str) -> (usize, &'t str) {
    let rest = text.trim_start_matches('0');
    let zeros = text.len() - rest.len();
    let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    *text = rest;
    (zeros, digits)
}

#[cfg(test)]
mod tests {
    use super::natural_order;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn sorted(names: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort_by(|left, right| natural_order(left, right));
        names
    }

    #[test]
    fn numbers_sort_by_value() {
        assert_eq!(
            sorted(&["file10", "file2", "file1", "file1.5", "file"]),
            ["file", "file1", "file1.5", "file2", "file10"]
        );
        assert_eq!(sorted(&["v1.10", "v1.9", "v1.100"]), ["v1.9", "v1.10", "v1.100"]);
        let long = ["n99999999999999999999999999999999999999998", "n9", "n10"];
        assert_eq!(sorted(&long), ["n9", "n10", long[0]]);
    }

    #[test]
    fn leading_zeros_and_case_only_break_ties() {
        assert_eq!(sorted(&["a01", "a1", "a001", "a2"]), ["a1", "a01", "a001", "a2"]);
        assert_eq!(sorted(&["a01c", "a1b"]), ["a1b", "a01c"]);
        assert_eq!(sorted(&["b", "A", "a", "B"]), ["A", "a", "B", "b"]);
    }

    #[test]
    fn folders_sort_before_what_is_in_later_folders() {
        assert_eq!(
            sorted(&["cat10/1", "cat2/9", "cat2/10", "cat/1", "cat 2/1"]),
            ["cat/1", "cat 2/1", "cat2/9", "cat2/10", "cat10/1"]
        );
    }

    /// A second implementation of the order, by keys: letters in lower case and numbers by value.
    fn by_keys(left: &str, right: &str) -> Ordering {
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        enum Piece {
            Number(usize, String),
            Letter(String),
        }
        let keys = |name: &str| {
            let (mut pieces, mut zeros, mut rest) =
                (Vec::new(), Vec::new(), name.chars().peekable());
            while let Some(letter) = rest.next() {
                if !letter.is_ascii_digit() {
                    pieces.push(Piece::Letter(letter.to_lowercase().collect()));
                    continue;
                }
                let mut run = String::from(letter);
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    run.push(digit);
                }
                let digits = run.trim_start_matches('0').to_owned();
                zeros.push(run.len() - digits.len());
                pieces.push(Piece::Number(digits.len(), digits));
            }
            (pieces, zeros)
        };
        let names = |path: &str| {
            let name = |name: &str| (keys(name), name.to_owned());
            path.split('/').map(name).collect::<Vec<_>>()
        };
        names(left).cmp(&names(right))
    }

    proptest! {
        #[test]
        fn order_is_that_of_keys(left in "[a-cA-C0-9/]{0,9}", right in "[a-cA-C0-9/]{0,9}") {
            prop_assert_eq!(natural_order(&left, &right), by_keys(&left, &right));
        }

        #[test]
        fn letters_of_any_kind_compare_in_lower_case(
            names in proptest::collection::vec("[abABéÉİßſ]{0,5}", 2..3),
        ) {
            let [left, right] = [&names[0], &names[1]];
            prop_assert_eq!(natural_order(left, right), by_keys(left, right));
        }

        #[test]
        fn the_order_is_total(
            names in proptest::collection::vec("[a-bA-B0-2/ é]{0,6}", 3..4),
        ) {
            let [a, b, c] = [&names[0], &names[1], &names[2]];
            prop_assert_eq!(natural_order(a, b), natural_order(b, a).reverse());
            prop_assert_eq!(natural_order(a, b) == Ordering::Equal, a == b);
            if natural_order(a, b).is_le() && natural_order(b, c).is_le() {
                prop_assert!(natural_order(a, c).is_le());
            }
        }
    }
}
