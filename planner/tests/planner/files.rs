//! Results saved as CSV and loaded again.

use crate::measured;
use meetpoint_planner::results::{CacheDrop, CsvError};
use meetpoint_planner::{Cache, Codec, Form, Measured, read_csv, write_csv};
use proptest::prelude::*;

prop_compose! {
    fn any_measured()(
        form in prop::sample::select(Form::ALL),
        codec in prop::sample::select(Codec::ALL),
        cache in prop::sample::select(Cache::ALL),
        drop in prop::sample::select(
            &[CacheDrop::Direct, CacheDrop::Dropped, CacheDrop::Ineffective, CacheDrop::Unverified]
                [..]
        ),
        numbers in prop::array::uniform16(0.0..1e15f64),
        disk in prop::option::of(0.0..1e12f64),
        joules in prop::option::of(0.0..1e6f64),
        counts in prop::array::uniform5(1u32..),
    ) -> Measured {
        Measured {
            codec,
            cache,
            threads: counts[0] as usize,
            dataset_bytes: u64::from(counts[1]) << 20,
            samples: u64::from(counts[2]),
            runs: counts[3],
            offline_error: numbers[0],
            process_seconds: numbers[1],
            save_seconds: numbers[2] / 3.0,
            stored_error: numbers[3] / 7.0,
            cached_bytes: numbers[4],
            cold_deviation: numbers[5] * 1e-12,
            per_second_deviation: numbers[6],
            sampling_error: numbers[7] / 1e16,
            cpu_seconds: numbers[8],
            context_switches: numbers[9],
            peak_memory_bytes: u64::from(counts[4]) << 31,
            disk_bytes_per_second: disk,
            cache_drop: drop,
            joules,
            ..measured(form, numbers[10], numbers[11] + 0.1, numbers[12] + 0.1, numbers[13])
        }
    }
}

proptest! {
    #[test]
    fn results_are_loaded_as_they_were_saved(rows in prop::collection::vec(any_measured(), 1..8)) {
        let text = write_csv(&rows).unwrap();
        prop_assert_eq!(read_csv(&text).unwrap(), rows);
    }
}

fn one() -> String {
    write_csv(&[measured(Form::Packed, 3.0, 125.0, 130.0, 101_000.0)]).unwrap()
}

#[test]
fn the_columns_of_the_file_are_those_that_are_documented() {
    let document = include_str!("../../../docs/planning.md");
    let text = one();
    let heading = text.lines().next().unwrap();
    for column in heading.split(',') {
        assert!(document.contains(&format!("| `{column}` |")), "docs/planning.md lacks {column}");
    }
}

#[test]
fn a_file_that_is_none_of_results_is_refused_with_what_is_wrong() {
    assert!(matches!(read_csv(""), Err(CsvError::Empty)));
    let other = read_csv("a,b\n1,2\n").unwrap_err();
    assert!(matches!(other, CsvError::Csv { .. }));
    assert!(other.to_string().starts_with("not a file of results: line 2: unknown field `a`"));
    let slow = one().replace(",125.0,", ",0.0,");
    let refused = read_csv(&slow);
    assert!(
        matches!(refused, Err(CsvError::Range { row: 1, column: "cold_per_second", .. })),
        "{refused:?}"
    );
    let other = one().replace(",1000,", ",1001,");
    let two = one() + other.lines().nth(1).unwrap() + "\n";
    assert!(matches!(read_csv(&two), Err(CsvError::Dataset { row: 2, got: 1001, expected: 1000 })));
    let unknown = one().replace(",none,", ",lz5,");
    assert!(matches!(read_csv(&unknown), Err(CsvError::Csv { .. })));
}
