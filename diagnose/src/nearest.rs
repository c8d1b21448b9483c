//! Finds the known word that is most similar to an unknown one.

/// The known word that is most similar to `word`, if it is similar enough to be a typo.
///
/// Case and separators are ignored, so `RandomResizedCrop` finds `random_resized_crop`.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = plain(word);
    // A longer word is not a typo, and the distance takes time in the product of the lengths.
    if plain.len() > 64 {
        return None;
    }
    let (distance, found) = known
        .iter()
        .map(|candidate| (distance(&plain, &self::plain(candidate)), *candidate))
        .min_by_key(|(distance, _)| *distance)?;
    // A third of the letters may be wrong, but never all of them.
    (distance <= plain.len().max(3) / 3 && distance < plain.len()).then_some(found)
}

/// The remedy for an unknown word: the most similar known word, or the list of all.
pub fn known(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`? choose one of {}", known.join(", ")),
        None => format!("choose one of {}", known.join(", ")),
    }
}

fn plain(word: &str) -> Vec<char> {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Minimum number of insertions, removals, replacements and swaps of neighbours that turn one word
/// into the other (the optimal string alignment distance).
fn distance(a: &[char], b: &[char]) -> usize {
    // Row i holds the distances from the first i characters of `a` to each prefix of `b`.
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn the_distance_is_that_of_the_textbook() {
        let chars = |word: &str| word.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(distance(&chars("saturday"), &chars("sunday")), 3);
        assert_eq!(distance(&chars(""), &chars("abc")), 3);
        assert_eq!(distance(&chars("same"), &chars("same")), 0);
        assert_eq!(distance(&chars("siez"), &chars("size")), 1);
    }

    #[test]
    fn a_misspelled_word_has_a_suggestion_and_an_unknown_one_has_none() {
        let known = ["resize", "center_crop", "random_resized_crop"];
        assert_eq!(nearest("resiez", &known), Some("resize"));
        assert_eq!(nearest("CenterCrop", &known), Some("center_crop"));
        assert_eq!(nearest("random-resized-crop", &known), Some("random_resized_crop"));
        assert_eq!(nearest("gaussian_blur", &known), None);
        assert_eq!(nearest("", &["p"]), None);
        assert_eq!(nearest("x", &["p"]), None);
        assert_eq!(nearest("P", &["p"]), Some("p"));
        assert_eq!(nearest(&"r".repeat(100_000), &known), None);
    }
}
