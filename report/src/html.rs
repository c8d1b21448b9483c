//! One self-contained HTML page: figures, charts, checks. It has no external resources and no
//! scripts.

use super::energy::tables;
use super::grid::Grid;
use super::svg::{COLOURS, PICTURES, Picture, escape};
use super::{INVALID, Report, Run, plots, table};
use crate::units;
use meetpoint_host::Tune;
use meetpoint_scheduler::{AnyStrategy, Value};

const STYLE: &str = include_str!("page.css");

/// The page of a report.
pub fn of_report(report: &Report) -> String {
    let mut body = String::new();
    body.push_str(&header(report));
    body.push_str(&section("Result", "", &grid(&table::comparison(report))));
    body.push_str(&pictures(report));
    body.push_str(&section(
        "Consistency",
        "What each strategy promises and what this run verified (C0 every batch once, C1 content \
         by index, C2 samples bit-identical, C3 order reproducible, C4 the host's own order, C5 \
         ranks agree, C6 epochs apart).",
        &format!(
            "{}<details><summary>How each was verified</summary>\n{}</details>\n",
            grid(&table::levels(report)),
            grid(&table::level_details(report))
        ),
    ));
    body.push_str(&section(
        "Measured profile and prediction",
        "t_c: preparation and step of a host batch; t_g: the step on a device batch; t_s: the \
         device's time for a batch. The closed form is evaluated with these.",
        &grid(&table::profiles(report)),
    ));
    body.push_str(&section(
        "Learned times and decisions",
        "Times that the scheduler expected at the end of each epoch, the record with which the \
         job replays it, and other decisions.",
        &grid(&table::decisions(report)),
    ));
    body.push_str(&devices(report));
    body.push_str(&ranks(report));
    body.push_str(&energies(report));
    body.push_str(&events(report));
    body.push_str(&setting(report));
    document("Meetpoint report", &body)
}

/// A picture inside a page.
pub fn figure(picture: &Picture) -> String {
    format!("<figure class=\"scroll\">\n{}</figure>\n", picture.element())
}

/// A self-contained page around sections in HTML.
pub fn page(title: &str, lead: &str, sections: &str) -> String {
    let heading =
        format!("<header>\n<h1>{}</h1>\n<p>{}</p>\n</header>\n", escape(title), escape(lead));
    document(title, &(heading + sections))
}

/// A complete page around its sections, with the style, without scripts or external resources.
pub fn document(title: &str, body: &str) -> String {
    let title = escape(title);
    let style = [COLOURS, STYLE, PICTURES].concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// A section with a heading, an introductory sentence, and its content in HTML.
pub fn section(title: &str, lead: &str, content: &str) -> String {
    let title = escape(title);
    let lead = if lead.is_empty() { String::new() } else { format!("<p>{}</p>\n", escape(lead)) };
    format!("<section>\n<h2>{title}</h2>\n{lead}{content}</section>\n")
}

/// A table that scrolls separately if the page is narrow.
pub fn grid(grid: &Grid) -> String {
    let mut html = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, name) in grid.head.iter().enumerate() {
        html.push_str(&format!("<th{}>{}</th>", alignment(grid, column), escape(name)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &grid.rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let class = tone(cell).map_or_else(|| alignment(grid, column), str::to_owned);
            html.push_str(&format!("<td{class}>{}</td>", escape(cell)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
    html
}

fn alignment(grid: &Grid, column: usize) -> String {
    if grid.is_number(column) { " class=\"number\"".to_owned() } else { String::new() }
}

/// The style class of a cell with a good or bad verdict.
fn tone(cell: &str) -> Option<&'static str> {
    match cell {
        "verified" => Some(" class=\"good\""),
        "FAILED" => Some(" class=\"bad\""),
        _ if cell.starts_with("INVALID") => Some(" class=\"bad\""),
        _ => None,
    }
}

fn header(report: &Report) -> String {
    let mut cards = String::new();
    for run in &report.runs {
        let ratio = run.speed_up(report).map_or_else(String::new, |ratio| {
            if run.strategy == "host-only" {
                "the baseline".to_owned()
            } else {
                format!("{ratio:.2} × host-only's speed")
            }
        });
        cards.push_str(&format!(
            "<div class=\"card\"><h3>{}</h3><p class=\"big\">{}</p><p>{} samples/s</p><p>{}</p>\
             </div>\n",
            escape(&run.strategy),
            escape(&units::seconds(run.totals.seconds)),
            escape(&units::significant(run.totals.samples_per_second)),
            escape(&ratio)
        ));
    }
    let job = &report.job;
    let lead = format!(
        "{} in batches of {} ({} an epoch), {} under each strategy.",
        units::count(job.samples, "sample"),
        job.batch_size,
        units::count(job.batches.into(), "batch"),
        units::count(job.epochs.into(), "epoch")
    );
    let mut warnings = String::new();
    for run in &report.runs {
        for warning in run.invalid() {
            let line = format!("{}: {warning}", run.strategy);
            warnings.push_str(&format!("<p class=\"warning\">{}</p>\n", escape(&line)));
        }
    }
    if report.runs.iter().any(|run| !run.invalid().is_empty()) {
        warnings.push_str(&format!("<p>INVALID: {}.</p>\n", escape(INVALID)));
    }
    for failed in report.failed() {
        warnings.push_str(&format!("<p class=\"warning\">{}</p>\n", escape(&failed)));
    }
    format!(
        "<header>\n<h1>Meetpoint report</h1>\n<p>{}</p>\n{warnings}<div class=\"cards\">\n{cards}\
         </div>\n</header>\n",
        escape(&lead)
    )
}

fn pictures(report: &Report) -> String {
    let runs: &[Run] = &report.runs;
    let entries = [
        (
            "Who prepared and who consumed",
            "One row for each end and one for the accelerator; a gap in the accelerator's row is \
             a wait. Where batches are thinner than a line, height is the share of the time. All \
             strategies share the time axis; the last epoch is shown.",
            plots::timeline(runs),
        ),
        (
            "Where both ends met",
            "Each dot is a batch at its index and the time of its consumption: the host works \
             from the left, the device from the right.",
            plots::meeting(runs),
        ),
        ("Throughput", "Samples consumed per second.", plots::throughput(runs)),
        (
            "Waiting",
            "Time from the request for a batch to its delivery. Without workers, this includes \
             preparation by the host.",
            plots::waits(runs),
        ),
        ("Usage", "Sums over all epochs; memory is the highest seen.", plots::usage(runs)),
    ];
    let figures = entries.map(|(title, lead, picture)| section(title, lead, &figure(&picture)));
    figures.concat() + &grid(&table::usage(report))
}

fn devices(report: &Report) -> String {
    let mut html = String::new();
    let devices = table::devices(report);
    if !devices.rows.is_empty() {
        let lead = "Sums over all epochs; t_s is the mean time of a batch.";
        html.push_str(&section("Devices", lead, &grid(&devices)));
    }
    let lead = "Each limit of the emulation is measured during the run. If one is more than 5 % \
                off target, the times of the run do not count.";
    let limits = table::speed_limits(report);
    if !limits.rows.is_empty() {
        html.push_str(&section("Emulated device: target and achieved", lead, &grid(&limits)));
    }
    let lead = "Contention is time in which the thread neither computed, slept nor waited for \
                storage. Run delay is how long it was ready to run and another thread had its \
                core, also after sleeps and waits for storage; steal is time of the hypervisor. \
                Late is how late the thread woke up from its sleeps.";
    let cores = table::emulated_cores(report);
    if !cores.rows.is_empty() {
        html.push_str(&section("Emulated device: disturbances", lead, &grid(&cores)));
    }
    html
}

fn ranks(report: &Report) -> String {
    let mut html = String::new();
    let ranks = table::ranks(report);
    if !ranks.rows.is_empty() {
        let lead = "Every rank takes as many steps as the others, and in each step a batch of the \
                    same kind of source.";
        html.push_str(&section("Ranks", lead, &grid(&ranks)));
    }
    let uneven = table::uneven(report);
    if !uneven.rows.is_empty() {
        let lead = "Numbers are those of the sequence of all ranks.";
        html.push_str(&section("Repeated and omitted batches", lead, &grid(&uneven)));
    }
    html
}

fn energies(report: &Report) -> String {
    let measured = tables::measured(report);
    let shown = if measured.rows.is_empty() {
        let why = tables::why_nothing(report);
        let why = why.unwrap_or_else(|| report.machine.energy_meters.to_string());
        format!("<p>Measured energy: none; {}.</p>\n", escape(&why))
    } else {
        grid(&measured)
    };
    let lead = "Meters see everything that runs on the machine, not only this program.";
    let mut html = section("Measured energy", lead, &shown);
    let lead = "Modelled figures come from the times above and a file of watts and prices, not \
                from a meter.";
    let modelled = tables::modelled(report);
    if !modelled.rows.is_empty() {
        let origin = format!("<p>{}.</p>\n", escape(&tables::origin(report)));
        html.push_str(&section("Modelled energy", lead, &(grid(&modelled) + &origin)));
    }
    let lead = "Core-seconds and bytes are counted; their effect on memory and flash is modelled. \
                Flash, life (the share of the drive's rated bytes) and cost are of one epoch.";
    let used = tables::consumption(report);
    if !used.rows.is_empty() {
        let cost = tables::cost(report);
        let cost = if cost.rows.is_empty() { String::new() } else { grid(&cost) };
        html.push_str(&section("Usage, wear and cost", lead, &(grid(&used) + &cost)));
    }
    html
}

fn events(report: &Report) -> String {
    let mut items = String::new();
    for notice in report.notice_lines() {
        items.push_str(&format!("<li>{}</li>\n", escape(&notice)));
    }
    for run in &report.runs {
        for event in run.event_lines() {
            items
                .push_str(&format!("<li>{}</li>\n", escape(&format!("{}: {event}", run.strategy))));
        }
    }
    if items.is_empty() {
        items.push_str("<li>No fault and no fallback.</li>\n");
    }
    section("What happened", "", &format!("<ul>\n{items}</ul>\n"))
}

fn setting(report: &Report) -> String {
    let (job, machine) = (&report.job, &report.machine);
    let last =
        if job.drop_last { "a short last batch left out" } else { "a short last batch kept" };
    let devices = match &job.devices[..] {
        [] => "none".to_owned(),
        devices => {
            let what = if job.shared { "; each can prepare every batch" } else { "" };
            let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
            format!("{}{what}", devices.join("; "))
        }
    };
    let rows = [
        ("dataset", format!("{} ({})", job.dataset, units::count(job.samples, "sample"))),
        ("order", format!("{}, seed {}, {last}", job.sampler, job.seed)),
        (
            "host",
            format!(
                "{}, {} ahead each{}",
                units::count(job.workers.into(), "worker"),
                units::count(job.prefetch.into(), "batch"),
                match job.tune {
                    Tune::Auto => ", then tuned",
                    Tune::Off => "",
                }
            ),
        ),
        ("memory budget", units::bytes(job.memory_budget_bytes)),
        ("devices", devices),
        ("device is given", job.choice.to_string()),
        ("ranks", job.ranks.to_string()),
        ("spool", job.spool.to_string()),
        ("accelerator", job.accelerator.to_string()),
        ("recipe", job.recipe_sha256.clone()),
        (
            "processor",
            format!("{}, {} usable", machine.processor, units::count(machine.cores as u64, "core")),
        ),
        ("memory", units::bytes(machine.memory_bytes)),
        ("kernel", machine.kernel.clone()),
        ("instruction set", machine.instruction_set.clone()),
        ("program", report.tool.clone()),
    ];
    let strategies = job.strategies.iter().map(|it| (it.name().as_str(), options(&it)));
    let rows: String = rows
        .into_iter()
        .chain(strategies)
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(&value)))
        .collect();
    let recipe = escape(&job.recipe_toml);
    section("Job and machine", "", &format!("<dl>\n{rows}</dl>\n<pre>{recipe}</pre>\n"))
}

/// The options of a strategy, as `split equal-finish, tail descending`.
fn options(strategy: &AnyStrategy) -> String {
    let options = strategy.options().into_iter();
    let texts = options.map(|(spec, value)| match &spec.takes.share {
        Some(share) if matches!(value, Value::Share(_)) => {
            format!("{} {} {value}", spec.name, share.key)
        }
        Some(_) | None => format!("{} {value}", spec.name),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::of_report;
    use crate::{Fact, Notice};
    use crate::{Verdict, made_up};
    use meetpoint_host::energy::{MeterError, NoMeters, UnusableMeter};
    use meetpoint_host::stats::LossCause;
    use meetpoint_storage::{EngineNote, SystemError};

    /// Elements that stand open, in order; a page is well formed when none is left.
    fn unclosed(html: &str) -> Vec<String> {
        let mut open: Vec<String> = Vec::new();
        for piece in html.split('<').skip(1) {
            let tag = piece.split('>').next().unwrap();
            let name = tag.split([' ', '/', '\n']).next().unwrap();
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(closed), "</{closed}>");
            } else if !(tag.ends_with('/') || ["meta", "!doctype"].contains(&name)) {
                open.push(name.to_owned());
            }
        }
        open
    }

    #[test]
    fn the_page_is_well_formed_and_loads_nothing() {
        let html = of_report(&made_up::report(50));
        assert_eq!(unclosed(&html), Vec::<String>::new());
        let without_namespace = html.replace("http://www.w3.org/2000/svg", "");
        for word in ["http://", "https://", "src=\"", "<script", "url(", "@import"] {
            assert!(!without_namespace.contains(word), "{word}");
        }
    }

    #[test]
    fn names_from_outside_cannot_become_markup() {
        let mut report = made_up::report(8);
        let hostile = "<img src=x onerror=alert(1)>";
        report.job.dataset = hostile.into();
        let error = SystemError { errno: None, message: hostile.into() };
        let note = EngineNote::RegisteredBuffers { error };
        report.notices.push(Notice::Storage { device: None, note });
        report.runs[0].strategy = hostile.into();
        let detail = Some(hostile.to_owned());
        let loss = LossCause::LinkBroke { detail }.into();
        report.runs[0].events.push(made_up::loss(loss));
        let fact = Fact::OrderOfRecord { record: hostile.into() };
        report.runs[0].levels[0].findings = vec![fact.into()];
        let html = of_report(&report);
        assert!(!html.contains("<img"));
        assert_eq!(unclosed(&html), Vec::<String>::new());
    }

    #[test]
    fn a_speed_limit_off_target_is_reported_at_the_top() {
        let html = of_report(&made_up::report(8));
        let top = html.split("<section>").next().unwrap();
        assert!(top.contains("INVALID: read-bandwidth is 8.0 % off target"));
        assert!(top.contains("its times do not count"), "{top}");
    }

    #[test]
    fn what_failed_is_said_at_the_top() {
        let mut report = made_up::report(8);
        report.runs[1].levels[0].verdict = Verdict::Failed;
        report.failures.push(made_up::failure("wrr", "<no device>"));
        let html = of_report(&report);
        let top = html.split("<section>").next().unwrap();
        assert!(top.contains("strategy wrr failed: &lt;no device&gt;"), "{top}");
        assert!(top.contains("mte broke C0: each of"), "{top}");
        assert!(html.contains("<td class=\"bad\">FAILED</td>"));
    }

    #[test]
    fn measured_and_modelled_energy_do_not_mix() {
        let html = of_report(&made_up::report(8));
        assert!(html.contains("<th class=\"number\">measured energy</th>"));
        assert!(html.contains("<th class=\"number\">modelled total</th>"));
        let mut report = made_up::report(8);
        report.runs.iter_mut().for_each(|run| run.measured_energy = None);
        let reason = MeterError::Library { library: "NVML".into(), detail: "not <here>".into() };
        let unusable = vec![UnusableMeter { meter: "rapl".into(), reason }];
        report.machine.energy_meters.none_because = Some(NoMeters { unusable });
        assert!(of_report(&report).contains("(rapl: NVML: not &lt;here&gt;)."));
    }
}
