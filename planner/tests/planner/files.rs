//! Results saved as CSV and loaded again.

use crate::measured;
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_planner::results::{CacheDrop, CsvError, RowPosition};
use meetpoint_planner::{Cache, Codec, Form, GpuIndex, Measured, read_csv, read_json, write_csv};
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
            per_second_deviation: numbers[6] * 1e-6,
            sampling_error: numbers[7] / 1e16,
            cpu_seconds: numbers[8] * 1e-11,
            context_switches: numbers[9],
            peak_memory_bytes: u64::from(counts[4]) << 31,
            disk_bytes_per_second: disk,
            cache_drop: drop,
            joules,
            ..measured(
                form,
                numbers[10],
                numbers[11] / 1e7 + 0.1,
                numbers[12] / 1e7 + 0.1,
                numbers[13],
            )
        }
    }
}

/// The same row with a GPU.
fn on_gpu(row: Measured) -> Measured {
    let (gpu, gpu_seconds, gpu_joules) = (Some(GpuIndex(1)), Some(0.002), Some(0.25));
    Measured { gpu, gpu_seconds, gpu_joules, ..row }
}

proptest! {
    #[test]
    fn results_are_loaded_as_they_were_saved(rows in prop::collection::vec(any_measured(), 1..8)) {
        let suit_gpu = rows.iter().filter(|it| it.strategy().suits_gpu()).cloned().map(on_gpu);
        let rows: Vec<_> = rows.iter().cloned().chain(suit_gpu).collect();
        let text = write_csv(&rows).unwrap();
        prop_assert_eq!(read_csv(&text).unwrap(), rows.clone());
        let text = serde_json::json!({ "results": rows }).to_string();
        prop_assert_eq!(read_json(&text).unwrap(), rows);
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
        matches!(
            refused,
            Err(CsvError::Range { at: RowPosition::Line(2), column: "cold_per_second", .. })
        ),
        "{refused:?}"
    );
    let other = one().replace(",1000,", ",1001,");
    let two = one() + other.lines().nth(1).unwrap() + "\n";
    let refused = read_csv(&two);
    let at = RowPosition::Line(3);
    assert!(
        matches!(refused, Err(CsvError::Dataset { at: it, got: 1001, expected: 1000 }) if it == at)
    );
    let unknown = one().replace(",none,", ",lz5,");
    let refused = read_csv(&unknown);
    assert!(
        matches!(&refused, Err(CsvError::Value { column, .. }) if column == "codec"),
        "{refused:?}"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_refused_with_its_row_and_column() {
    let text = two();
    let line = text.lines().nth(2).unwrap();
    let heading: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let rows = read_csv(&text).unwrap();
    for (column, value) in [
        ("form", "file"),
        ("threads", "-1"),
        ("cache", "hot"),
        ("per_second", "x"),
        ("cache_drop", "x"),
        ("joules", "x"),
        ("gpu", "tpu"),
        ("gpu_seconds", "x"),
    ] {
        let index = heading.iter().position(|it| *it == column).unwrap();
        let mut fields: Vec<&str> = line.split(',').collect();
        fields[index] = value;
        let refused = read_csv(&text.replace(line, &fields.join(","))).unwrap_err();
        let is_named = matches!(
            &refused, CsvError::Value { at: RowPosition::Line(3), column: it, value: text, .. }
                if it == column && *text == format!("{value:?}")
        );
        assert!(is_named, "{column}: {refused}");
        assert!(refused.remedy().unwrap().spelled(Surface::CommandLine).contains(column));
        let mut document = serde_json::json!({ "results": rows });
        document["results"][1][column] = value.into();
        let refused = read_json(&document.to_string()).unwrap_err();
        let is_named = matches!(
            &refused, CsvError::Value { at: RowPosition::Result(2), column: it, .. } if it == column
        );
        assert!(is_named, "{column}: {refused}");
    }
    let mut document = serde_json::json!({ "results": rows });
    document["results"][1].as_object_mut().unwrap().remove("codec");
    let refused = read_json(&document.to_string()).unwrap_err();
    assert!(matches!(&refused, CsvError::Csv { reason } if reason.starts_with("result 2: ")));
}

#[test]
fn numbers_that_no_machine_measures_are_refused_with_their_range() {
    let row = || on_gpu(measured(Form::Packed, 3.0, 125.0, 130.0, 101_000.0));
    let gpu_seconds = |seconds| Measured { gpu_seconds: Some(seconds), ..row() };
    let gpu_joules = |joules| Measured { gpu_joules: Some(joules), ..row() };
    for (wrong, column) in [
        (gpu_seconds(1e9), "gpu_seconds"),
        (gpu_seconds(1e308), "gpu_seconds"),
        (gpu_joules(1e308), "gpu_joules"),
        (Measured { per_second: 1e-9, ..row() }, "per_second"),
        (Measured { cold_per_second: 1e-9, ..row() }, "cold_per_second"),
        (Measured { per_second: 1e308, ..row() }, "per_second"),
        (Measured { cpu_seconds: 1e308, ..row() }, "cpu_seconds"),
        (Measured { offline_seconds: 1e308, ..row() }, "offline_seconds"),
    ] {
        let refused = read_csv(&write_csv(&[row(), wrong]).unwrap()).unwrap_err();
        let is_range = matches!(
            refused, CsvError::Range { at: RowPosition::Line(3), column: it, .. } if it == column
        );
        assert!(is_range, "{refused}");
        assert!(refused.to_string().len() < 100, "{refused}");
    }
    assert_eq!(read_csv(&write_csv(&[gpu_seconds(86_400.0)]).unwrap()).unwrap().len(), 1);
}

#[test]
fn operations_that_do_not_fit_the_form_are_refused() {
    let row = || measured(Form::Prepared, 3.0, 125.0, 130.0, 101_000.0);
    for wrong in [
        Measured { operations: 0, ..row() },
        Measured { operation: String::new(), ..row() },
        Measured { form: Form::Packed, ..row() },
        on_gpu(Measured { operations: 0, operation: String::new(), ..row() }),
    ] {
        let refused = read_csv(&write_csv(&[wrong]).unwrap()).unwrap_err();
        let at = RowPosition::Line(2);
        assert!(matches!(refused, CsvError::Operations { at: it, .. } if it == at), "{refused}");
    }
}

/// A file with a row of the CPU, and one of a GPU.
fn two() -> String {
    let row = measured(Form::Packed, 3.0, 125.0, 130.0, 101_000.0);
    write_csv(&[row.clone(), on_gpu(row)]).unwrap()
}

#[test]
fn files_from_before_there_were_gpus_are_of_the_cpu_alone() {
    let without = |text: &str| {
        let keep = |line: &str| line.rsplitn(4, ',').last().unwrap().to_owned() + "\n";
        text.lines().map(keep).collect::<String>()
    };
    let rows = read_csv(&without(&one())).unwrap();
    assert!(
        rows.iter().all(|row| (row.gpu, row.gpu_seconds, row.gpu_joules) == (None, None, None))
    );
    assert_eq!(rows, read_csv(&one()).unwrap());
}

#[test]
fn wrong_figures_of_a_gpu_are_refused_with_the_line() {
    assert_eq!(read_csv(&two()).unwrap()[1].gpu, Some(GpuIndex(1)));
    let at = RowPosition::Line(3);
    for (gpu, column) in [
        ("cuda:1,0.0,0.25", "gpu_seconds"),
        ("cuda:1,NaN,0.25", "gpu_seconds"),
        ("cuda:1,-1.0,0.25", "gpu_seconds"),
        ("cuda:1,inf,0.25", "gpu_seconds"),
        ("cuda:1,0.002,0.0", "gpu_joules"),
        ("cuda:1,0.002,NaN", "gpu_joules"),
    ] {
        let refused = read_csv(&two().replace("cuda:1,0.002,0.25", gpu));
        let is_range = matches!(
            refused, Err(CsvError::Range { at: line, column: it, .. }) if line == at && it == column
        );
        assert!(is_range, "{gpu}: {refused:?}");
    }
    let refused = |text: &str| read_csv(text).unwrap_err();
    let missing = refused(&two().replace("cuda:1,0.002,0.25", "cuda:1,,0.25"));
    assert!(matches!(missing, CsvError::NoGpuSeconds { at: it, .. } if it == at), "{missing}");
    // A file without the column, too.
    let column = |text: &str| text.replace(",gpu_seconds", "").replace(",0.002", "");
    let missing = refused(&column(&two()).replace(",,,\n", ",,\n"));
    assert!(matches!(missing, CsvError::NoGpuSeconds { at: it, .. } if it == at), "{missing}");
    let without = refused(&two().replace("cuda:1,0.002,0.25", ",0.002,0.25"));
    assert!(
        matches!(without, CsvError::WithoutGpu { at: it, column: "gpu_seconds" } if it == at),
        "{without}"
    );
    let unknown = refused(&two().replace("cuda:1", "tpu"));
    assert!(matches!(&unknown, CsvError::Value { column, .. } if column == "gpu"), "{unknown}");
    let row = on_gpu(measured(Form::Packed, 3.0, 125.0, 130.0, 101_000.0));
    for row in [
        Measured { cache: Cache::Application, ..row.clone() },
        Measured { codec: Codec::Lz4, ..row },
        on_gpu(measured(Form::Prepared, 3.0, 125.0, 130.0, 101_000.0)),
    ] {
        let refused = refused(&write_csv(&[row]).unwrap());
        let at = RowPosition::Line(2);
        assert!(matches!(refused, CsvError::NotOnGpu { at: it, .. } if it == at), "{refused}");
    }
}
