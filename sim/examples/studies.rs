//! Prints the studies as plain tables.

use meetpoint_sim::studies::{closed_form_rows, robustness};

fn main() -> Result<(), meetpoint_sim::Error> {
    for row in closed_form_rows()? {
        let show = |value: Option<f64>| value.map_or("-".to_owned(), |it| format!("{it:.4}"));
        let (t_c, t_g, t_s) = row.times;
        println!(
            "w={} {t_c:>5} {t_g:>5} {t_s:>5}  {:<18}  formula {}  simulated {}  saving {} / {}",
            row.workers,
            row.strategy,
            show(row.formula),
            show(row.simulated),
            show(row.saving_by_formula()),
            show(row.saving_simulated())
        );
    }
    for table in robustness(|_, _| {})? {
        println!(
            "\n{}{}",
            table.strategy,
            table.refused.map_or(String::new(), |it| format!(": {it}"))
        );
        for row in table.rows {
            println!(
                "  {:<36} T {:>8.1} s  T/T0 {:.3}  devices {:>5.1} %  waits {:>7.1} s  mixed {}",
                row.condition.describe(),
                row.total_s,
                row.against_host_only(),
                row.device_share * 100.0,
                row.wait_s,
                row.mixed_steps.map_or("-".to_owned(), |it| format!("{:.1} %", it * 100.0))
            );
        }
    }
    Ok(())
}
