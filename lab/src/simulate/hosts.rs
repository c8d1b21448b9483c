//! A training over many hosts: how many agents it needs, what limits it, and how its time compares
//! with that of the hosts alone.

use crate::{Error, Progress};
use meetpoint_report::grid::{Grid, Style};
use meetpoint_report::units::seconds;
use meetpoint_sim::studies::hosts::{
    ACCELERATORS_LIMIT, HostsRow, MACHINE, Ratios, Spread, many_hosts,
};
use serde::Serialize;

pub use meetpoint_sim::studies::hosts::{
    AGENTS_EACH_MAX, AgentsPerHost, BATCHES_MIN, Elements, HOSTS_MAX, Selection,
};

/// A simulated machine. With several seeds, all but the ratios are the figures of the epoch with
/// the median `time_ratio`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Element type of the prepared batches.
    pub elements: &'static str,
    /// Links of hosts and agents.
    pub link_gbit_per_second: f64,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of agents, all together.
    pub agents: u32,
    /// Samples a second of each host.
    pub samples_per_second: f64,
    /// Share of the time in which accelerators wait.
    pub stalled: f64,
    /// Share of the time in which cores of agents prepare.
    pub agents_busy: f64,
    /// Share of the bandwidth of the hosts' links that is used.
    pub link_busy: f64,
    /// Seconds that the epoch takes longer than at this throughput, because of its start and end.
    pub ends_seconds: f64,
    /// T/T0: the time of the epoch, divided by that of the host alone; `None` without agents.
    pub time_ratio: Option<Seeds>,
    /// The same of the middle half of the steps.
    pub middle_time_ratio: Option<Seeds>,
    /// What limits the throughput; `None`: nothing is in use for nine tenths of the time.
    pub limit: Option<&'static str>,
}

/// A figure over all seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Seeds {
    /// The median.
    pub median: f64,
    /// The largest.
    pub largest: f64,
}

impl From<Spread> for Seeds {
    fn from(Spread { median, largest }: Spread) -> Self {
        Self { median, largest }
    }
}

impl From<HostsRow> for Row {
    fn from(row: HostsRow) -> Self {
        let HostsRow { elements, hosts, agents, link_mbit, figures, ratios } = row;
        Self {
            elements: elements.name(),
            link_gbit_per_second: gbit(link_mbit),
            hosts,
            agents,
            samples_per_second: figures.samples_per_second,
            stalled: figures.stalled,
            agents_busy: figures.agents_busy,
            link_busy: figures.link_busy,
            ends_seconds: figures.ends_seconds,
            time_ratio: ratios.map(|Ratios { epoch, .. }| epoch.into()),
            middle_time_ratio: ratios.map(|Ratios { middle, .. }| middle.into()),
            limit: figures.limit.map(|limit| limit.name()),
        }
    }
}

/// The fewest simulated agents with which the accelerators hardly wait.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Needed {
    /// Element type of the prepared batches.
    pub elements: &'static str,
    /// Links of hosts and agents.
    pub link_gbit_per_second: f64,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of agents, all together; `None`: no simulated number is enough.
    pub agents: Option<u32>,
    /// The highest throughput of any number, as a share of that of the accelerators.
    pub share_max: f64,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    kind: &'static str,
    batches: u32,
    seeds: u32,
    rows: Vec<Row>,
    needed: Vec<Needed>,
}

/// Simulates every row of a selection, whose lists have each value once.
pub fn run(selection: &Selection, progress: Progress<'_>) -> Result<Document, Error> {
    each_once("element type", &selection.elements, |it| it.name().to_owned())?;
    each_once("link of", &selection.links_mbit, |&mbit| format!("{} Gbit/s", gbit(mbit)))?;
    each_once("number of hosts", &selection.hosts, u32::to_string)?;
    each_once("number of agents for each host", &selection.agents, |it| match it.per {
        1 => it.of.to_string(),
        per => format!("{}/{per}", it.of),
    })?;
    let rows = many_hosts(selection, |done, total| progress(done as u64, total as u64))?;
    let needed = needed(selection, &rows);
    let &Selection { batches, seeds, .. } = selection;
    let rows = rows.into_iter().map(Row::from).collect();
    Ok(Document { kind: "hosts", batches, seeds, rows, needed })
}

fn each_once<T: PartialEq>(
    what: &'static str,
    values: &[T],
    text: impl Fn(&T) -> String,
) -> Result<(), Error> {
    let is_repeated = |(at, value): &(usize, &T)| values[..*at].contains(value);
    match values.iter().enumerate().find(is_repeated) {
        Some((_, value)) => Err(Error::ValueTwice { what, value: text(value) }),
        None => Ok(()),
    }
}

fn gbit(mbit: u32) -> f64 {
    f64::from(mbit) / 1_000.0
}

fn needed(selection: &Selection, rows: &[HostsRow]) -> Vec<Needed> {
    let mut found = Vec::new();
    for &elements in &selection.elements {
        for &link_mbit in &selection.links_mbit {
            for &hosts in &selection.hosts {
                let of = rows.iter().filter(|row| {
                    (row.elements, row.link_mbit, row.hosts) == (elements, link_mbit, hosts)
                });
                let works = |row: &HostsRow| 1.0 - row.figures.stalled;
                let enough = of.clone().filter(|row| works(row) >= ACCELERATORS_LIMIT);
                found.push(Needed {
                    elements: elements.name(),
                    link_gbit_per_second: gbit(link_mbit),
                    hosts,
                    agents: enough.map(|row| row.agents).min(),
                    share_max: of.map(works).fold(0.0, f64::max),
                });
            }
        }
    }
    found
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn ratio(of: Option<Seeds>, seeds: u32) -> String {
    match of {
        None => "–".to_owned(),
        Some(Seeds { median, .. }) if seeds == 1 => format!("{median:.3}"),
        Some(Seeds { median, largest }) => format!("{median:.3} ({largest:.3})"),
    }
}

/// The tables for a terminal.
pub fn text(document: &Document, style: Style) -> String {
    let rate = f64::from(MACHINE.samples) * 1e9 / MACHINE.step_ns as f64;
    let host = f64::from(MACHINE.workers) / (MACHINE.core_ns as f64 / 1e9);
    let mut text = format!(
        "Simulated, nothing measured: hosts whose accelerators take {rate:.0} samples/s and whose \
         {} cores prepare {:.0}; agents with {} cores; σ of core times {}; `auto`; {} batches of \
         each host.\n",
        MACHINE.workers,
        host * f64::from(MACHINE.samples),
        MACHINE.cores,
        MACHINE.sigma,
        document.batches,
    );
    if document.seeds > 1 {
        text.push_str(&format!(
            "T / host alone: median of {} seeds, and the largest; other figures: those of the \
             median.\n",
            document.seeds
        ));
    }
    for (elements, link) in tables(document) {
        let found = Elements::ALL.into_iter().find(|it| it.name() == elements);
        let bytes = found.expect("it is one of them").batch_bytes();
        text.push_str(&format!(
            "\n{elements} batches of {:.1} MB, links of {link} Gbit/s\n",
            bytes as f64 / 1e6
        ));
        text.push_str(&table(document, elements, link).text(style));
    }
    text.push_str("\nFewest agents with which accelerators work for 95 % of the time\n");
    text.push_str(&fewest(document).text(style));
    text
}

/// The element type and link of each table, in the order of the rows.
fn tables(document: &Document) -> Vec<(&'static str, f64)> {
    let mut found = Vec::new();
    for it in &document.needed {
        let of = (it.elements, it.link_gbit_per_second);
        if found.last() != Some(&of) {
            found.push(of);
        }
    }
    found
}

fn table(document: &Document, elements: &str, link: f64) -> Grid {
    let head = [
        "hosts",
        "agents",
        "samples/s per host",
        "stalled",
        "agents busy",
        "link in use",
        "start and end",
        "T / host alone",
        "middle half",
        "limit",
    ];
    let mut grid = Grid::new(&head, 0..9);
    let is_asked = |row: &&Row| row.elements == elements && row.link_gbit_per_second == link;
    for row in document.rows.iter().filter(is_asked) {
        grid.rows.push(vec![
            row.hosts.to_string(),
            row.agents.to_string(),
            format!("{:.0}", row.samples_per_second),
            percent(row.stalled),
            if row.agents > 0 { percent(row.agents_busy) } else { "–".to_owned() },
            percent(row.link_busy),
            seconds(row.ends_seconds),
            ratio(row.time_ratio, document.seeds),
            ratio(row.middle_time_ratio, document.seeds),
            row.limit.unwrap_or("–").to_owned(),
        ]);
    }
    grid
}

fn fewest(document: &Document) -> Grid {
    let of_table = |(elements, link): (&'static str, f64)| {
        let is_asked =
            move |it: &&Needed| it.elements == elements && it.link_gbit_per_second == link;
        document.needed.iter().filter(is_asked)
    };
    let tables = tables(document);
    let mut head = vec!["batches".to_owned(), "link".to_owned()];
    let hosts = tables.first().copied().into_iter().flat_map(of_table).map(|it| it.hosts);
    head.extend(hosts.map(|hosts| match hosts {
        1 => "1 host".to_owned(),
        hosts => format!("{hosts} hosts"),
    }));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut grid = Grid::new(&head, 1..head.len());
    for (elements, link) in tables {
        let cells = of_table((elements, link)).map(|it| match it.agents {
            Some(agents) => agents.to_string(),
            None => format!("at most {:.0} %", it.share_max * 100.0),
        });
        let mut row = vec![elements.to_owned(), format!("{link} Gbit/s")];
        row.extend(cells);
        grid.rows.push(row);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::{
        AgentsPerHost, Document, Elements, HostsRow, Ratios, Row, Selection, Spread, needed, run,
        text,
    };
    use crate::Error;
    use meetpoint_report::grid::Style;
    use meetpoint_sim::studies::hosts::Figures;

    fn row(agents: u32, stalled: f64) -> HostsRow {
        let spread = |median| Spread { median, largest: median + 0.1 };
        HostsRow {
            elements: Elements::Uint8,
            hosts: 8,
            agents,
            link_mbit: 10_000,
            figures: Figures {
                samples_per_second: 8_000.0 * (1.0 - stalled),
                stalled,
                agents_busy: 0.5,
                link_busy: 0.5,
                ends_seconds: 1.0,
                limit: None,
            },
            ratios: (agents > 0).then_some(Ratios { epoch: spread(0.7), middle: spread(0.6) }),
        }
    }

    fn document(rows: &[HostsRow], seeds: u32) -> Document {
        let selection = Selection { hosts: vec![8], ..Selection::default() };
        let needed = needed(&selection, rows);
        let rows = rows.iter().map(|&row| Row::from(row)).collect();
        Document { kind: "hosts", batches: 400, seeds, rows, needed }
    }

    #[test]
    fn the_fewest_agents_that_are_enough_are_named() {
        let rows = [row(0, 0.5), row(4, 0.2), row(6, 0.04), row(8, 0.0)];
        let found = document(&rows, 1).needed;
        assert_eq!(found[0].agents, Some(6));
        let rest = document(&rows[..2], 1);
        assert_eq!(rest.needed[0].agents, None);
        assert!((rest.needed[0].share_max - 0.8).abs() < 1e-9);
        assert!(text(&rest, Style::Plain).contains("at most 80 %"));
    }

    #[test]
    fn the_largest_ratio_follows_the_median_of_several_seeds() {
        let rows = [row(0, 0.5), row(4, 0.2)];
        let one = text(&document(&rows, 1), Style::Plain);
        assert!(one.contains("0.700") && one.contains("0.600") && !one.contains('('), "{one}");
        let three = text(&document(&rows, 3), Style::Plain);
        assert!(three.contains("0.700 (0.800)") && three.contains("0.600 (0.700)"), "{three}");
        assert!(three.contains("median of 3 seeds"), "{three}");
    }

    #[test]
    fn a_value_that_is_given_twice_is_refused() {
        let all = Selection::default;
        let twice = [
            Selection { hosts: vec![8, 1, 8], ..all() },
            Selection { links_mbit: vec![100, 100], ..all() },
            Selection { elements: vec![Elements::Uint8, Elements::Uint8], ..all() },
            Selection { agents: vec![AgentsPerHost { of: 3, per: 2 }; 2], ..all() },
        ];
        let found = twice.map(|selection| {
            let refused = run(&selection, &mut |_, _| panic!("nothing is simulated"));
            let Err(Error::ValueTwice { value, .. }) = refused else { panic!("{refused:?}") };
            value
        });
        assert_eq!(found, ["8", "0.1 Gbit/s", "uint8", "3/2"]);
    }
}
