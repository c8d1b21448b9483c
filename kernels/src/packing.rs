//! The documents of a batch, packed into its first rows.
//!
//! A row is three planes of int32: tokens, segments, positions. Segment 0 is padding.

use crate::Error;
use crate::series::Pause;
use meetpoint_format::recipe::Packing;

/// Planes of a row.
const PLANES: usize = 3;

/// Packs the documents in `rows` of `length` tokens, in order. Uses memory for a second copy of the
/// batch's tokens.
pub(crate) fn pack(
    method: Packing,
    length: usize,
    rows: &mut [u8],
    pause: Pause<'_>,
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let row_bytes = 4 * PLANES * length;
    let mut documents: Vec<Vec<i32>> = Vec::new();
    // Without padding, every row remains full.
    let mut pad_token = 0;
    for row in rows.chunks_exact(row_bytes) {
        pause()?;
        let row = numbers(row);
        let real = row[length..2 * length].iter().take_while(|segment| **segment != 0).count();
        if let Some(pad) = row[real..length].first() {
            pad_token = *pad;
        }
        if real > 0 {
            documents.push(row[..real].to_vec());
        }
    }
    let mut packed: Vec<Vec<&[i32]>> = Vec::new();
    match method {
        Packing::FirstFit => first_fit(&documents, length, &mut packed),
        Packing::Concatenate => concatenate(&documents, length, &mut packed),
    }
    for (index, row) in rows.chunks_exact_mut(row_bytes).enumerate() {
        pause()?;
        write(packed.get(index).map_or(&[], |row| row), (length, pad_token), row);
    }
    Ok(())
}

/// Puts each document into the first row with enough space. There are at most as many rows as
/// documents.
fn first_fit<'a>(documents: &'a [Vec<i32>], length: usize, packed: &mut Vec<Vec<&'a [i32]>>) {
    let mut room: Vec<usize> = Vec::new();
    for document in documents {
        let row = room.iter().position(|room| document.len() <= *room).unwrap_or_else(|| {
            room.push(length);
            packed.push(Vec::new());
            room.len() - 1
        });
        room[row] -= document.len();
        packed[row].push(document);
    }
}

/// Concatenates the documents, split at the end of a row. No document is longer than a row.
fn concatenate<'a>(documents: &'a [Vec<i32>], length: usize, packed: &mut Vec<Vec<&'a [i32]>>) {
    let mut room = 0;
    for document in documents {
        let mut rest = &document[..];
        while !rest.is_empty() {
            if room == 0 {
                packed.push(Vec::new());
                room = length;
            }
            let (here, after) = rest.split_at(rest.len().min(room));
            packed.last_mut().expect("a row has room").push(here);
            room -= here.len();
            rest = after;
        }
    }
}

/// Writes the planes of a row.
fn write(segments: &[&[i32]], (length, pad_token): (usize, i32), row: &mut [u8]) {
    let (words, _) = row.as_chunks_mut::<4>();
    let (ids, planes) = words.split_at_mut(length);
    let (numbers, positions) = planes.split_at_mut(length);
    ids.fill(pad_token.to_le_bytes());
    numbers.fill([0; 4]);
    positions.fill([0; 4]);
    let mut at = 0;
    for (number, tokens) in (1_i32..).zip(segments) {
        for (position, token) in (0_i32..).zip(*tokens) {
            ids[at] = token.to_le_bytes();
            numbers[at] = number.to_le_bytes();
            positions[at] = position.to_le_bytes();
            at += 1;
        }
    }
}

fn numbers(row: &[u8]) -> Vec<i32> {
    row.as_chunks::<4>().0.iter().copied().map(i32::from_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::{Packing, numbers, pack};
    use proptest::prelude::*;

    /// Documents as rows in the format of `pad_sequence`.
    fn rows(documents: &[Vec<i32>], length: usize) -> Vec<u8> {
        let plane = |document: &[i32], pad: i32, value: &dyn Fn(usize, i32) -> i32| {
            let real = document.iter().enumerate().map(|(at, token)| value(at, *token));
            let padding = std::iter::repeat_n(pad, length - document.len());
            real.chain(padding).collect::<Vec<i32>>()
        };
        let of_one = |document: &Vec<i32>| {
            [
                plane(document, -7, &|_, token| token),
                plane(document, 0, &|_, _| 1),
                plane(document, 0, &|at, _| at as i32),
            ]
            .concat()
        };
        documents.iter().flat_map(of_one).flat_map(i32::to_le_bytes).collect()
    }

    fn packed(method: Packing, documents: &[Vec<i32>], length: usize) -> Vec<Vec<i32>> {
        let mut batch = rows(documents, length);
        pack(method, length, &mut batch, &mut || Ok(())).unwrap();
        numbers(&batch).chunks(length).map(<[i32]>::to_vec).collect()
    }

    #[test]
    fn each_document_is_in_the_first_row_with_room() {
        let documents = [vec![1, 2, 3], vec![4, 5, 6], vec![7], vec![], vec![8, 9]];
        let rows = packed(Packing::FirstFit, &documents, 4);
        assert_eq!(rows[..3], [vec![1, 2, 3, 7], vec![1, 1, 1, 2], vec![0, 1, 2, 0]]);
        assert_eq!(rows[3..6], [vec![4, 5, 6, -7], vec![1, 1, 1, 0], vec![0, 1, 2, 0]]);
        assert_eq!(rows[6..9], [vec![8, 9, -7, -7], vec![1, 1, 0, 0], vec![0, 1, 0, 0]]);
        assert_eq!(rows[9..12], [vec![-7; 4], vec![0; 4], vec![0; 4]]);
        assert_eq!(rows.len(), 15);
    }

    #[test]
    fn documents_that_reach_the_end_of_a_row_continue_in_the_next() {
        let documents = [vec![1, 2, 3], vec![4, 5, 6], vec![7]];
        let rows = packed(Packing::Concatenate, &documents, 4);
        assert_eq!(rows[..3], [vec![1, 2, 3, 4], vec![1, 1, 1, 2], vec![0, 1, 2, 0]]);
        assert_eq!(rows[3..6], [vec![5, 6, 7, -7], vec![1, 1, 2, 0], vec![0, 1, 0, 0]]);
        assert_eq!(rows[6..9], [vec![-7; 4], vec![0; 4], vec![0; 4]]);
    }

    proptest! {
        #[test]
        fn every_token_stays_in_its_order_and_padding_is_at_the_end(
            documents in prop::collection::vec(prop::collection::vec(0..100_i32, 0..=9), 1..20),
            is_first_fit: bool,
        ) {
            let method = if is_first_fit { Packing::FirstFit } else { Packing::Concatenate };
            let rows = packed(method, &documents, 9);
            let mut found: Vec<Vec<i32>> = Vec::new();
            for row in rows.chunks(3) {
                let mut last = 0;
                let [tokens, segments, positions] = [0, 1, 2].map(|plane| &row[plane]);
                for ((&token, &segment), &position) in tokens.iter().zip(segments).zip(positions) {
                    if segment == 0 {
                        prop_assert_eq!((token, position), (-7, 0));
                        last = i32::MAX;
                        continue;
                    }
                    if segment != last {
                        prop_assert_eq!((segment, position), (last + 1, 0));
                        found.push(vec![]);
                    }
                    last = segment;
                    let document = found.last_mut().unwrap();
                    prop_assert_eq!(position as usize, document.len());
                    document.push(token);
                }
            }
            let real: Vec<Vec<i32>> = documents.into_iter().filter(|it| !it.is_empty()).collect();
            if is_first_fit {
                found.sort();
                let mut real = real;
                real.sort();
                prop_assert_eq!(found, real);
            } else {
                prop_assert_eq!(found.concat(), real.concat());
            }
        }
    }
}
