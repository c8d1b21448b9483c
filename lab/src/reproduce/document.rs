//! The report of a reproduction: all rows, each marked as published, simulated, measured or
//! modelled.

use super::measured::{self, Outcome};
use super::paper::{self, Figure};
use super::pictures::{self, Measured};
use super::region::{self, Method, Reading};
use super::{energy, experiments};
use meetpoint_report::grid::{Grid, Style};
use meetpoint_report::html;
use meetpoint_report::svg::escape;
use meetpoint_report::units::signed_percent;
use serde::Serialize;

/// Introduction of the page.
const LEAD: &str = "Published figures of DDLP (arXiv 2407.00005) compared with those of our \
                    scheduler: simulated at the points that the published figures imply, modelled \
                    energy, and, on request, measured with an emulated device. The paper's tables \
                    are not available to us; unknown figures are listed, not guessed.";

/// Explains the columns of the region's table.
const LINES_LEAD: &str = "Derived from the published figures. Lines: t_s/t_c at t_g/t_c = 0.2, \
     0.4, 0.6, 0.8. Point: (t_g/t_c, t_s/t_c) if -37.6 % is n_s/N of the row, under wrr. Mean \
     power: for an energy of -19.7 % there, over that of the host alone.";

/// Version of the JSON document.
const VERSION: u32 = 1;

/// The report.
#[derive(Debug, Serialize)]
pub struct Document {
    kind: &'static str,
    version: u32,
    tool: String,
    /// Our figures compared with the published ones.
    headline: Vec<Headline>,
    /// Figures as published by the authors.
    published: Vec<Figure>,
    /// Which machines the headline implies.
    region: Vec<Bound>,
    simulated: Vec<experiments::Row>,
    modelled: Vec<energy::Row>,
    measured: Option<Outcome>,
    /// Experiments that were not run, with the reason.
    left_out: LeftOut,
    falsifiers: Vec<String>,
    unknown: Vec<&'static str>,
}

/// Experiments that have no row, with the reason.
#[derive(Debug, Default, Serialize)]
pub struct LeftOut {
    /// Experiments that the scheduler refuses.
    pub simulated: Vec<String>,
    /// Experiments that this machine or program cannot measure.
    pub measured: Vec<String>,
}

/// A published figure and ours. Each kind of figure has its own column.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Headline {
    quantity: &'static str,
    published: &'static str,
    /// At the point that the figure itself implies, so it equals the figure if the analysis is
    /// consistent.
    simulated: Vec<OurFigure>,
    measured: Option<OurFigure>,
    modelled: Vec<OurFigure>,
}

/// A figure of ours, with its assumptions.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct OurFigure {
    value: f64,
    of: String,
}

/// What one interpretation of one figure implies.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Bound {
    kind: &'static str,
    figure: &'static str,
    reading: Reading,
    /// t_s/t_c above which no strategy of the paper reaches the figure.
    slowest_device: f64,
    /// t_s/t_c on the line of `wrr` at t_g/t_c = 0.2, 0.4, 0.6, 0.8.
    wrr_border: [f64; 4],
    /// The same for `mte`; `None` if no device is fast enough.
    mte_border: [Option<f64>; 4],
    /// (t_g/t_c, t_s/t_c) if the published usage is the device's share of the same row.
    point: Option<(f64, f64)>,
    /// E/E0 divided by T/T0 of the published energy at that point: the ratio of mean powers.
    power_ratio: Option<f64>,
}

const BORDER_AT: [f64; 4] = [0.2, 0.4, 0.6, 0.8];

impl Document {
    /// Compares all results with the published figures.
    pub fn new(
        simulated: Vec<experiments::Row>,
        modelled: Vec<energy::Row>,
        measured: Option<Outcome>,
        left_out: LeftOut,
    ) -> Self {
        Self {
            kind: "reproduction",
            version: VERSION,
            tool: concat!("meetpoint ", env!("CARGO_PKG_VERSION")).to_owned(),
            headline: headline(&simulated, &modelled, measured.as_ref()),
            published: paper::FIGURES.to_vec(),
            region: bounds(),
            simulated,
            modelled,
            measured,
            left_out,
            falsifiers: paper::falsifiers(),
            unknown: paper::UNKNOWN.to_vec(),
        }
    }
}

fn headline(
    simulated: &[experiments::Row],
    modelled: &[energy::Row],
    measured: Option<&Outcome>,
) -> Vec<Headline> {
    let point = |recipe: &'static str, of: fn(&experiments::Row) -> f64| {
        let at_point = |row: &&experiments::Row| {
            row.recipe == recipe
                && row.strategy == "wrr"
                && (row.workers, row.accelerators) == (0, 1)
                && row.host_path <= 1.0
        };
        let figures = |row: &experiments::Row| OurFigure {
            value: of(row),
            of: format!("wrr at the point read as {}", row.reading.name()),
        };
        simulated.iter().filter(at_point).map(figures).collect::<Vec<_>>()
    };
    let gain = |row: &experiments::Row| row.reading.gain(row.time_ratio);
    let ours = |recipe: &str, of: fn(&measured::Row) -> Option<f64>| {
        let rows = &measured?.rows;
        let counts = |row: &&measured::Row| {
            row.recipe == recipe && row.strategy == "wrr" && row.workers == 0
        };
        let row = rows.iter().find(counts)?;
        let invalid = if row.invalid.is_empty() { "" } else { ", INVALID" };
        let of_row = format!("wrr, w = 0, {}{invalid}", row.host_path);
        Some(OurFigure { value: of(row)?, of: of_row })
    };
    let gained = |row: &measured::Row| Some(1.0 / row.time_ratio? - 1.0);
    let energies = Reading::ALL.into_iter().flat_map(|reading| energies(modelled, reading));
    let energies = energies.collect();
    let row = |place: usize, simulated, measured, modelled| Headline {
        quantity: paper::FIGURES[place].quantity,
        published: paper::FIGURES[place].value,
        simulated,
        measured,
        modelled,
    };
    let dali = dali(simulated);
    vec![
        row(0, point("ImageNet-like", gain), ours("ImageNet-like", gained), Vec::new()),
        row(1, point("CIFAR-10-like", gain), ours("CIFAR-10-like", gained), Vec::new()),
        row(2, Vec::new(), None, energies),
        row(
            3,
            point("ImageNet-like", |row| -row.host_cpu_less),
            ours("ImageNet-like", |row| Some(-row.host_cpu_less?)),
            Vec::new(),
        ),
        row(4, dali, dali_measured(measured), Vec::new()),
    ]
}

/// The minimum and the maximum that any power preset saves.
fn energies(modelled: &[energy::Row], reading: Reading) -> Vec<OurFigure> {
    let of = modelled.iter().filter(|row| row.reading == reading);
    let mut ratios: Vec<f64> = of.map(|row| row.modelled_node_ratio - 1.0).collect();
    ratios.sort_by(f64::total_cmp);
    let figures = |value: Option<&f64>, which: &str| {
        let of = format!("the {which} of {} presets, read as {}", ratios.len(), reading.name());
        value.map(|&value| OurFigure { value, of })
    };
    figures(ratios.last(), "least").into_iter().chain(figures(ratios.first(), "most")).collect()
}

/// Gains of the device with a faster host path, compared with that path alone.
fn dali(simulated: &[experiments::Row]) -> Vec<OurFigure> {
    let faster = |row: &&experiments::Row| {
        row.recipe == "ImageNet-like"
            && row.strategy == "wrr"
            && row.workers == 0
            && row.host_path > 1.0
    };
    let figures = |row: &experiments::Row| OurFigure {
        value: row.reading.gain(row.time_ratio),
        of: format!("wrr over a host {} x as fast, read as {}", row.host_path, row.reading.name()),
    };
    simulated.iter().filter(faster).map(figures).collect()
}

fn dali_measured(measured: Option<&Outcome>) -> Option<OurFigure> {
    let of = |row: &&measured::Row| {
        row.host_path == "faster" && row.strategy == "wrr" && row.workers == 0
    };
    let row = measured?.rows.iter().find(of)?;
    let invalid = if row.invalid.is_empty() { "" } else { ", INVALID" };
    let of = format!("wrr over the faster host path alone, w = 0{invalid}");
    Some(OurFigure { value: 1.0 / row.time_ratio? - 1.0, of })
}

fn bounds() -> Vec<Bound> {
    let mut bounds = Vec::new();
    for (figure, gain, has_usage) in [
        ("ImageNet +23.5 %", paper::IMAGENET_GAIN, true),
        ("CIFAR-10 +27.6 %", paper::CIFAR_GAIN, false),
    ] {
        for reading in Reading::ALL {
            let point = has_usage.then(|| region::point(reading, gain, paper::USAGE_LESS));
            let mte = |x| Some(region::border(Method::Mte, reading, gain, x)).filter(|y| *y > 0.0);
            bounds.push(Bound {
                kind: "derived",
                figure,
                reading,
                slowest_device: reading.slowest_device(gain),
                wrr_border: BORDER_AT.map(|x| region::border(Method::Wrr, reading, gain, x)),
                mte_border: BORDER_AT.map(mte),
                point,
                power_ratio: point
                    .map(|(x, y)| (1.0 - paper::ENERGY_LESS) / region::ratio(Method::Wrr, x, y)),
            });
        }
    }
    bounds
}

fn headline_grid(document: &Document) -> Grid {
    let mut head = vec!["quantity", "published", "simulated"];
    if document.measured.is_some() {
        head.push("measured");
    }
    head.push("modelled");
    let mut grid = Grid::new(&head, 0..0);
    let listed = |figures: &[OurFigure]| match figures {
        [] => "–".to_owned(),
        figures => figures.iter().map(one).collect::<Vec<_>>().join("; "),
    };
    for row in &document.headline {
        let mut cells =
            vec![row.quantity.to_owned(), row.published.to_owned(), listed(&row.simulated)];
        if document.measured.is_some() {
            cells.push(row.measured.as_ref().map_or_else(|| "–".to_owned(), one));
        }
        cells.push(listed(&row.modelled));
        grid.rows.push(cells);
    }
    grid
}

fn one(figure: &OurFigure) -> String {
    format!("{} ({})", signed_percent(figure.value), figure.of)
}

fn region_grid(document: &Document) -> Grid {
    let head = [
        "kind",
        "figure",
        "read as",
        "t_s/t_c at most",
        "wrr's line",
        "mte's line",
        "point",
        "mean power",
    ];
    let mut grid = Grid::new(&head, 3..4);
    let number = |value: f64| format!("{value:.2}");
    for bound in &document.region {
        let maybe = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), number);
        let point = bound.point.map(|(x, y)| format!("({x:.3}, {y:.2})"));
        let power = bound.power_ratio.map(|it| format!("{it:.3}"));
        let unknown = || "unknown".to_owned();
        grid.rows.push(vec![
            bound.kind.to_owned(),
            bound.figure.to_owned(),
            bound.reading.name().to_owned(),
            number(bound.slowest_device),
            bound.wrr_border.map(number).join(", "),
            bound.mte_border.map(maybe).join(", "),
            point.unwrap_or_else(unknown),
            power.unwrap_or_else(unknown),
        ]);
    }
    grid
}

/// Position of the emulated machine.
fn places(measured: Option<&Outcome>) -> Vec<Measured> {
    let rows = measured.map(|outcome| outcome.rows.as_slice()).unwrap_or_default();
    rows.iter()
        .filter(|row| row.strategy == "wrr" && row.workers == 0)
        .filter_map(|row| {
            let (x, y) = measured::ratios(row);
            let invalid = if row.invalid.is_empty() { "" } else { " (INVALID)" };
            let path = if row.host_path == "faster" { ", faster" } else { "" };
            Some(Measured { name: format!("{}{path}{invalid}", row.recipe), x: x?, y: y? })
        })
        .collect()
}

fn location_in_words(measured: Option<&Outcome>, what_measures: &str) -> Vec<String> {
    let Some(outcome) = measured else {
        return vec![format!("The emulated machine was not measured; {what_measures} does.")];
    };
    let places = places(Some(outcome));
    let machine = &outcome.machine;
    let place = |it: &Measured| {
        format!("{}: t_g/t_c {:.3}, t_s/t_c {:.2} on {machine}", it.name, it.x, it.y)
    };
    places.iter().map(place).collect()
}

/// Text for a terminal; `what_measures` names the option that enables measurements.
pub fn text(document: &Document, style: Style, what_measures: &str) -> String {
    let mut text = String::from("Published figures and ours; each kind has a separate column\n");
    text.push_str(&headline_grid(document).text(style));
    text.push_str("\nWhich machines yield the published gains (w = 0, one device, one rank)\n");
    text.push_str(LINES_LEAD);
    text.push('\n');
    text.push_str(&region_grid(document).text(style));
    text.push_str("\nExperiments, simulated: throughput over the host alone in the same setting\n");
    text.push_str(&experiments::grid(&document.simulated).text(style));
    text.push_str("\nEnergy by the model, wrr over the host alone; published: -19.7 %\n");
    text.push_str(&energy::grid(&document.modelled).text(style));
    if let Some(measured) = &document.measured {
        text.push_str("\nExperiments, measured on the emulated device\n");
        text.push_str(&measured::grid(&measured.rows).text(style));
        text.push_str("\nTheir energy by the model; none of it is measured\n");
        text.push_str(&measured::energy_grid(&measured.energy).text(style));
    }
    let list = |title: &str, items: &[String]| match items {
        [] => String::new(),
        items => format!("\n{title}\n  - {}\n", items.join("\n  - ")),
    };
    text.push_str(&list(
        "Position of the emulated machine",
        &location_in_words(document.measured.as_ref(), what_measures),
    ));
    if let Some(measured) = &document.measured {
        text.push_str(&list("What failed", &measured.failures));
    }
    text.push_str(&list("Not simulated", &document.left_out.simulated));
    text.push_str(&list("Not measured", &document.left_out.measured));
    text.push_str(&list("What would falsify it", &document.falsifiers));
    let unknown: Vec<String> = document.unknown.iter().map(|it| (*it).to_owned()).collect();
    text.push_str(&list("Facts about the paper that are unknown to us", &unknown));
    text.push('\n');
    text
}

/// An HTML page; `what_measures` names the option that enables measurements.
pub fn page(document: &Document, what_measures: &str) -> String {
    let list = |items: &[String]| {
        let items: String =
            items.iter().map(|item| format!("<li>{}</li>\n", escape(item))).collect();
        if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
    };
    let places = places(document.measured.as_ref());
    let mut regions = String::new();
    for reading in Reading::ALL {
        regions.push_str(&html::figure(&pictures::region(reading, &places)));
    }
    let mut page = html::section(
        "The headline",
        "Each kind of figure has a separate column. Simulated figures are computed at the points \
         that the published ones imply, so agreement only shows that the analysis is consistent.",
        &html::grid(&headline_grid(document)),
    );
    page += &html::section(
        "Which machines yield it",
        "Below a line the gain is larger. Solid: wrr, dashed: mte with both ends finishing \
         together. The point is where +23.5 % and a device's share of 37.6 % meet, if they are of \
         one row. A device above a line's left end cannot give the gain, whatever t_g.",
        &(regions + &format!("<p>{LINES_LEAD}</p>\n") + &html::grid(&region_grid(document))),
    );
    page += &html::section(
        "What the energy implies for the power",
        "On a line, the published -19.7 % holds at the headline's point. Powers are relative to \
         the constant power (base and idle).",
        &(html::figure(&pictures::watts()) + &html::grid(&energy::grid(&document.modelled))),
    );
    page += &html::section(
        "Experiments, simulated",
        "Throughput over the host alone in the same setting. Points, the faster host path and \
         the number of accelerators are assumptions; the paper's are not known.",
        &(html::grid(&experiments::grid(&document.simulated))
            + &list(&document.left_out.simulated)),
    );
    let lies = list(&location_in_words(document.measured.as_ref(), what_measures));
    let mut ours = lies;
    if let Some(measured) = &document.measured {
        ours += &html::grid(&measured::grid(&measured.rows));
        ours += "<h3>Their energy by the model; none of it is measured</h3>\n";
        ours += &html::grid(&measured::energy_grid(&measured.energy));
        if !measured.failures.is_empty() {
            ours += &list(&measured.failures);
        }
        ours += "<h3>Not measured</h3>\n";
        ours += &list(&document.left_out.measured);
    }
    page += &html::section("Experiments, measured on the emulated device", "", &ours);
    page += &html::section("What would falsify it", "", &list(&document.falsifiers));
    let unknown: Vec<String> = document.unknown.iter().map(|it| (*it).to_owned()).collect();
    page += &html::section("Facts about the paper that are unknown to us", "", &list(&unknown));
    html::page("DDLP, reproduced", LEAD, &page)
}

#[cfg(test)]
mod tests {
    use super::{Document, LeftOut, Style, headline_grid, page, text};
    use crate::reproduce::experiments::settings;
    use crate::reproduce::{energy, measured};

    fn document(measured: Option<measured::Outcome>) -> Document {
        let modelled = energy::rows(&settings()).unwrap();
        Document::new(Vec::new(), modelled, measured, LeftOut::default())
    }

    #[test]
    fn measured_and_modelled_never_share_a_column() {
        let with = document(Some(measured::Outcome::default()));
        let grid = headline_grid(&with);
        assert_eq!(grid.head, ["quantity", "published", "simulated", "measured", "modelled"]);
        assert!(grid.rows.iter().all(|row| row.len() == grid.head.len()));
        let without = headline_grid(&document(None));
        assert!(!without.head.contains(&"measured".to_owned()));
    }

    #[test]
    fn what_is_unknown_and_what_would_falsify_it_is_on_terminal_and_page() {
        let document = document(None);
        let page = page(&document, "this");
        for shown in [text(&document, Style::Plain, "this"), page] {
            for part in ["4.26", "3.26", "unknown", "+23.5 %", "-19.7 %", "falsify", "modelled("] {
                assert!(shown.contains(part), "{part}");
            }
        }
    }
}
