//! A profile as text: the table, the decision in sentences, the HTML page.

use super::Document;
use crate::surface::output::table_style;
use crate::surface::units;
use meetpoint_format::recipe::CutRefusal;
use meetpoint_planner::decide::{Change, Ranked, RefusedBecause, extra_storage};
use meetpoint_planner::results::CacheDrop;
use meetpoint_planner::score::ScoredStrategy;
use meetpoint_planner::vocabulary::Cache;
use meetpoint_planner::{Codec, Measured, StorageMeaning};
use meetpoint_report::grid::Grid;
use meetpoint_report::html::{figure, grid, page as whole_page, section};
use meetpoint_report::svg::Picture;

/// Position of the column with the GPU, after that of the threads.
const GPU_COLUMN: usize = 3;

/// Maximum number of strategies in the table on a terminal.
const LISTED_MAX: usize = 20;

fn bytes(value: f64) -> String {
    units::bytes(value.max(0.0).round() as u64)
}

/// Describes the stored form.
pub(super) fn form(measured: &Measured) -> String {
    match measured.codec {
        Codec::None => measured.point().to_string(),
        Codec::Lz4 | Codec::Zstd => format!("{}, {}", measured.point(), measured.codec.name()),
    }
}

/// Describes a strategy.
pub(super) fn name(measured: &Measured) -> String {
    let cache = match measured.cache {
        Cache::Cold => "no cache",
        Cache::Page => "page cache",
        Cache::Application => "application cache",
    };
    let threads = units::count(measured.threads as u64, "thread");
    let gpu = measured.gpu.map_or_else(String::new, |gpu| format!(" with {gpu}"));
    format!("{}, {threads}{gpu}, {cache}", form(measured))
}

/// Text for a terminal.
pub(super) fn text(document: &Document) -> String {
    let whole = table(document);
    let more = whole.rows.len().saturating_sub(LISTED_MAX);
    let mut listed = whole;
    listed.rows.truncate(LISTED_MAX);
    let mut text = listed.text(table_style());
    if more > 0 {
        let strategies =
            units::count(more as u64, "more strategy").replace("strategys", "strategies");
        text.push_str(&format!("and {strategies}; --csv saves and --json prints all\n"));
    }
    text.push('\n');
    for sentence in sentences(document) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text
}

/// The HTML page.
pub(super) fn page(document: &Document, picture: &Picture) -> String {
    let lead = sentences(document).join(" ");
    let drawn = section("Throughput against storage", "", &figure(picture));
    let table = section("Strategies", "Best first.", &grid(&table(document)));
    whole_page("Meetpoint profile", &lead, &(drawn + &table))
}

/// Every strategy, best first.
fn table(document: &Document) -> Grid {
    let mut head = vec![
        "stored",
        "codec",
        "threads",
        "cache",
        "offline",
        "storage",
        "cold/s",
        "later/s",
        "±",
        "in all",
        "±",
        "pays from",
    ];
    let has_gpu = document.results.iter().any(|it| it.gpu.is_some());
    if has_gpu {
        head.insert(GPU_COLUMN, "gpu");
    }
    let has_energy = document.results.iter().any(|it| it.joules.is_some());
    if has_energy {
        head.push("J/sample");
    }
    if document.is_by_score {
        head.push("score");
    }
    let numbers = 2..head.len();
    head.push("");
    let mut grid = Grid::new(&head, numbers);
    let goal = &document.decision.goal;
    for index in order(document) {
        let measured = &document.results[index];
        let ranked = document.decision.ranked.iter().find(|it| it.index == index);
        let scored = document.scores.iter().find(|it| it.index == index);
        let off = measured.seconds_off(goal.epochs, goal.confidence);
        let off = if off.is_finite() { units::seconds(off) } else { "–".to_owned() };
        let epochs = ranked.and_then(|it| it.amortized_after);
        let mut row = vec![
            measured.point().to_string(),
            measured.codec.name().to_owned(),
            measured.threads.to_string(),
            measured.cache.name().to_owned(),
            units::seconds(measured.offline_seconds),
            bytes(extra_storage(measured)),
            units::significant(measured.cold_per_second),
            units::significant(measured.per_second),
            units::significant(measured.per_second_deviation),
            units::seconds(measured.seconds(goal.epochs)),
            off,
            epochs.map_or_else(|| "–".to_owned(), |it| units::count(u64::from(it), "epoch")),
        ];
        if has_gpu {
            let gpu = measured.gpu.map_or_else(|| "–".to_owned(), |gpu| gpu.to_string());
            row.insert(GPU_COLUMN, gpu);
        }
        if has_energy {
            row.push(measured.joules.map_or_else(|| "–".to_owned(), units::significant));
        }
        if document.is_by_score {
            row.push(scored.map_or_else(String::new, |it| format!("{:.4}", it.score)));
        }
        row.push(remark(document, index).to_owned());
        grid.rows.push(row);
    }
    grid
}

/// The strategies in the order of the table, refused ones last.
fn order(document: &Document) -> Vec<usize> {
    let refused = document.decision.refused.iter().map(|it| it.index);
    if document.is_by_score {
        return scored(document).map(|it| it.index).chain(refused).collect();
    }
    document.decision.ranked.iter().map(|it| it.index).chain(refused).collect()
}

/// The scores of the strategies that fit the limits, best first.
fn scored(document: &Document) -> impl Iterator<Item = &ScoredStrategy> {
    let refused = &document.decision.refused;
    document.scores.iter().filter(|it| refused.iter().all(|refused| refused.index != it.index))
}

fn remark(document: &Document, index: usize) -> &'static str {
    let refused = document.decision.refused.iter().find(|it| it.index == index);
    match refused.map(|it| it.because) {
        None if document.is_by_score => {
            let is_fastest = document.decision.best().index == index;
            let is_best = scored(document).next().is_some_and(|it| it.index == index);
            match (is_best, is_fastest) {
                (true, true) => "best, and first to finish",
                (true, false) => "best",
                (false, true) => "first to finish",
                (false, false) => "",
            }
        }
        None if document.decision.best().index == index => "best",
        None => "",
        Some(RefusedBecause::Storage { .. }) => "over the storage limit",
        Some(RefusedBecause::Memory { .. }) => "over the memory limit",
        Some(RefusedBecause::Lossy) => "loses detail",
    }
}

/// The decision and its caveats.
fn sentences(document: &Document) -> Vec<String> {
    let mut said: Vec<String> = score_sentence(document).into_iter().collect();
    said.extend([winner(document), lead(document)]);
    said.extend(change_sentence(document));
    said.extend(refused_sentences(document));
    said.extend(document.no_meters.iter().map(|why| format!("Energy is unavailable: {why}.")));
    said.extend(gpu_sentences(&document.results));
    let is_ineffective = |it: &Measured| it.cache_drop == CacheDrop::Ineffective;
    if document.results.iter().any(is_ineffective) {
        said.push(
            "The page cache of the temporary files could not be emptied (as on tmpfs), so cold \
             figures are figures of the page cache; --temporary names a folder on the drive."
                .to_owned(),
        );
    }
    said
}

/// Sentences about what was not measured with a GPU.
fn gpu_sentences(results: &[Measured]) -> Vec<String> {
    let Some(gpu) = results.iter().find_map(|it| it.gpu) else { return Vec::new() };
    let with_gpu = |of: &Measured| {
        let is_same = |it: &&Measured| it.gpu.is_some() && it.point() == of.point();
        results.iter().find(is_same)
    };
    let mut said = Vec::new();
    let suits = |it: &&Measured| it.gpu.is_none() && it.strategy().suits_gpu();
    let mut left: Vec<String> = results
        .iter()
        .filter(suits)
        .filter(|it| with_gpu(it).is_none())
        .map(|it| it.point().to_string())
        .collect();
    left.dedup();
    if !left.is_empty() {
        said.push(format!("{gpu} took no sample stored as {}.", left.join(" or ")));
    }
    if results.iter().any(|it| it.gpu.is_some() && it.gpu_joules.is_none()) {
        said.push(format!(
            "The joules of {gpu} were not measured: this requires exactly one NVIDIA board, with a \
             working meter."
        ));
    }
    said
}

fn winner(document: &Document) -> String {
    let Ranked { index, seconds, seconds_off, amortized_after } = document.decision.best();
    let best = &document.results[index];
    let epochs = units::count(u64::from(document.decision.goal.epochs), "epoch");
    let off = seconds_off.map_or_else(String::new, |off| format!(" ± {}", units::seconds(off)));
    let offline = match best.point().is_nothing_offline() {
        true => "nothing is prepared offline".to_owned(),
        false => format!(
            "{} of it offline, storing {}",
            units::seconds(best.offline_seconds),
            bytes(extra_storage(best))
        ),
    };
    let pays = match amortized_after {
        Some(epochs) => format!(
            ", and faster than the unchanged files from {} on",
            units::count(u64::from(epochs), "epoch")
        ),
        None => String::new(),
    };
    let what = if document.is_by_score { "First to finish" } else { "Best for" };
    format!("{what} {epochs}: {}: {}{off}, {offline}{pays}.", name(best), units::seconds(seconds))
}

fn lead(document: &Document) -> String {
    let decision = &document.decision;
    let percent = 100.0 * decision.goal.confidence;
    let (Some(next), Some(margin)) = (decision.ranked.get(1), decision.margin_seconds) else {
        return "No other strategy fits.".to_owned();
    };
    let certainty = if decision.is_certain {
        format!("it is the best at {percent} % confidence")
    } else {
        let open = units::count(decision.contenders().len() as u64 - 1, "other");
        format!(
            "at {percent} % confidence {open} may be as good; measure more --samples or --runs to \
             tell them apart"
        )
    };
    let runner_up = name(&document.results[next.index]);
    format!("Next is {runner_up}, which takes {} longer; {certainty}.", units::seconds(margin))
}

fn change_sentence(document: &Document) -> Option<String> {
    let of = |index: usize| name(&document.results[index]);
    let parts = document.decision.changes.iter().map(|change| match *change {
        Change::EpochsAtLeast { epochs, index } => {
            format!("from {} on, {}", units::count(u64::from(epochs), "epoch"), of(index))
        }
        Change::EpochsAtMost { epochs, index } => {
            format!("up to {}, {}", units::count(u64::from(epochs), "epoch"), of(index))
        }
        Change::StorageAtLeast { bytes: limit, index } => {
            format!("with a storage limit of {} or more, {}", bytes(limit), of(index))
        }
        Change::StorageBelow { bytes: limit, index } => {
            format!("with a storage limit below {}, {}", bytes(limit), of(index))
        }
        Change::MemoryAtLeast { bytes: limit, index } => {
            format!("with a memory limit of {} or more, {}", bytes(limit), of(index))
        }
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| format!("Another would be the best: {}.", parts.join("; ")))
}

fn score_sentence(document: &Document) -> Option<String> {
    let mut fitting = scored(document).filter(|_| document.is_by_score);
    let first = fitting.next()?;
    let storage = match document.score_storage {
        StorageMeaning::Extra => "extra storage",
        StorageMeaning::Total => "total storage",
    };
    let ties = fitting.filter(|it| it.rank == first.rank).count();
    let tied = match ties {
        0 => String::new(),
        _ => format!(", with {} of the same score", units::count(ties as u64, "other")),
    };
    let best = name(&document.results[first.index]);
    Some(format!("Best by PRESTO's score with {storage}: {best}, {:.4}{tied}.", first.score))
}

/// The cuts that are not legal, grouped by reason.
fn refused_sentences(document: &Document) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for point in &document.refused_points {
        let sentence = match point.because {
            CutRefusal::Random { by, position } => format!(
                "Operation {position}, {by}, has random parameters, so that nothing from there on \
                 is prepared offline."
            ),
            CutRefusal::OnBatches { by, position } => format!(
                "Operation {position}, {by}, operates on batches, so that nothing from there on is \
                 prepared offline."
            ),
            CutRefusal::LooksAhead { by, position } => format!(
                "Operation {position}, {by}, depends on the crop or resize after it, so that the \
                 recipe is not cut between them."
            ),
            CutRefusal::SeveralPictures => {
                "The recipe gives several pictures of a sample, each from the decoded one, so that \
                 nothing is prepared offline."
                    .to_owned()
            }
            CutRefusal::Targets { by, position } => format!(
                "Operation {position}, {by}, transforms the targets of the recipe, which are \
                 stored unchanged, so that nothing from there on is prepared offline."
            ),
        };
        if !said.contains(&sentence) {
            said.push(sentence);
        }
    }
    said
}
