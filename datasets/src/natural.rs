//! The order of files: as people count, `file2` before `file10`.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::str::Chars;

/// Compares two `/`-separated paths, folder by folder, in natural order.
///
/// Runs of ASCII digits compare by value, everything else character by character in lower case.
/// Names that are equal so far are told apart by leading zeros (fewer first) and then by their
/// bytes (`A` before `a`), so that the order is total: only equal paths compare equal.
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
    let (mut lefts, mut rights) = (left.chars().peekable(), right.chars().peekable());
    // Leading zeros count only when nothing else differs.
    let mut zeros = Ordering::Equal;
    loop {
        let order = match (lefts.peek().copied(), rights.peek().copied()) {
            (None, None) => return zeros,
            (Some(l), Some(r)) if l.is_ascii_digit() && r.is_ascii_digit() => {
                let (left_zeros, left_digits) = take_number(&mut lefts);
                let (right_zeros, right_digits) = take_number(&mut rights);
                zeros = zeros.then(left_zeros.cmp(&right_zeros));
                let by_length = left_digits.len().cmp(&right_digits.len());
                by_length.then_with(|| left_digits.cmp(&right_digits))
            }
            (Some(_), Some(_)) => {
                let lower = |chars: &mut Peekable<Chars<'_>>| {
                    chars.next().into_iter().flat_map(char::to_lowercase).collect::<String>()
                };
                lower(&mut lefts).cmp(&lower(&mut rights))
            }
            (left, right) => left.is_some().cmp(&right.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Takes a run of digits: how many leading zeros, and the digits after them.
fn take_number(chars: &mut Peekable<Chars<'_>>) -> (usize, String) {
    let mut zeros = 0;
    while chars.next_if_eq(&'0').is_some() {
        zeros += 1;
    }
    let mut digits = String::new();
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
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

    proptest! {
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
