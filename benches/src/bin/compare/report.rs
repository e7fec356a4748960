//! Tables and a chart.

use crate::measure::{Figures, median};
use core::fmt::Write as _;

/// One workload over one kind of server.
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) program: String,
    rows: Vec<(String, Vec<Figures>, u64)>,
}

/// What a table shows, and which of it as a ratio to the floor of the same run.
const SHOWN: [(&str, &[&str], &str, &str); 8] = [
    (
        "w1",
        &[
            "pair p50 µs",
            "pair p99 µs",
            "acquire p50 µs",
            "acquire p99 µs",
            "release p50 µs",
            "release p99 µs",
            "client CPU µs/pair",
        ],
        "pair p50 µs",
        "floor-q3",
    ),
    ("w2", &["cycles/s", "client CPU µs/cycle", "peak MiB", "failed"], "cycles/s", "floor-all5"),
    (
        "w3",
        &[
            "grants/s",
            "wait p50 ms",
            "wait p99 ms",
            "wait max ms",
            "least served",
            "most served",
            "commands/grant",
        ],
        "grants/s",
        "floor-q3",
    ),
    ("w4", &["acquire p50 µs", "acquire p99 µs", "success %"], "acquire p50 µs", "floor-q3"),
    (
        "w5",
        &["hand-over p50 µs", "hand-over p99 µs", "uncontended acquire p50 µs", "hand-over ÷ acquire"],
        "",
        "",
    ),
    ("w6", &["client CPU µs/renewal", "renewals", "locks lost"], "client CPU µs/renewal", "floor-q3"),
    ("w7", &["grants of the fifty", "grants of the one", "share of the one %"], "", ""),
    ("w8", &["grants", "commands/grant", "commands to come"], "commands/grant", "redlock-tokio, polling"),
];

impl Table {
    pub(crate) fn new(title: &str, program: &str) -> Self {
        Self { title: title.to_owned(), program: program.to_owned(), rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &str, figures: Figures, left: u64) {
        match self.rows.iter_mut().find(|(of, ..)| of == name) {
            Some((_, runs, most)) => {
                runs.push(figures);
                *most = left.max(*most);
            }
            None => self.rows.push((name.to_owned(), vec![figures], left)),
        }
    }

    pub(crate) fn figure(&self, name: &str, figure: &str) -> Option<(f64, f64, f64)> {
        let (_, runs, _) = self.rows.iter().find(|(of, ..)| of == name)?;
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(figure)).collect();
        (!values.is_empty()).then(|| median(values))
    }

    /// The medians, with the least and the most of all repeats.
    pub(crate) fn markdown(&self) -> String {
        let Some((_, shown, key, floor)) = SHOWN.iter().find(|(of, ..)| self.title.starts_with(of)) else {
            return String::new();
        };
        let mut text = format!("\n**{}**, {}\n\n| |", self.title, self.program);
        for figure in *shown {
            let _fits = write!(text, " {figure} |");
        }
        let ratio = !key.is_empty();
        text.push_str(if ratio { " ratio |\n| --- |" } else { "\n| --- |" });
        text.push_str(&" ---: |".repeat(shown.len() + usize::from(ratio)));
        text.push('\n');
        for (name, _, left) in &self.rows {
            let _fits = write!(text, "| {name} |");
            for figure in *shown {
                let _fits = match self.figure(name, figure) {
                    Some((median, least, most)) => {
                        write!(text, " {} ({}–{}) |", short(median), short(least), short(most))
                    }
                    None => write!(text, " – |"),
                };
            }
            if ratio {
                let of = |name: &str| self.figure(name, key).map(|(median, ..)| median);
                let _fits = match of(name).zip(of(floor)) {
                    Some((mine, floor_figure)) => {
                        write!(
                            text,
                            " {:.2} × {} |",
                            mine / floor_figure,
                            if floor.starts_with("floor") { "floor" } else { "polling" }
                        )
                    }
                    None => write!(text, " – |"),
                };
            }
            if *left > 0 {
                let _fits = write!(text, " left {left} keys");
            }
            text.push('\n');
        }
        text
    }
}

fn short(value: f64) -> String {
    if value.abs() >= 100.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

pub(crate) fn json(tables: &[Table]) -> Result<String, serde_json::Error> {
    let tables: Vec<_> = tables
        .iter()
        .map(|table| {
            let rows: Vec<_> = table
                .rows
                .iter()
                .map(|(name, runs, left)| {
                    let runs: Vec<serde_json::Map<_, _>> = runs
                        .iter()
                        .map(|run| {
                            run.0.iter().map(|(name, value)| (name.clone(), (*value).into())).collect()
                        })
                        .collect();
                    serde_json::json!({ "contestant": name, "runs": runs, "keys left": left })
                })
                .collect();
            serde_json::json!({ "workload": table.title, "servers": table.program, "rows": rows })
        })
        .collect();
    serde_json::to_string_pretty(&tables)
}

/// Bars of what w1 and w2 gave: shorter is better in the first, longer in the second.
pub(crate) fn chart(tables: &[Table]) -> String {
    let panels = [
        ("w1", "pair p50 µs", "Acquire and release, one client: median in µs (shorter is better)"),
        ("w2", "cycles/s", "200 tasks: acquires and releases per second (longer is better)"),
    ];
    let (mut body, mut y) = (String::new(), 24.0);
    for (workload, figure, title) in panels {
        for table in tables.iter().filter(|table| table.title == workload) {
            let _fits = writeln!(
                body,
                r#"<text x="10" y="{y}" font-weight="bold">{title}, {}</text>"#,
                table.program
            );
            y += 10.0;
            let bars: Vec<(&str, f64)> = table
                .rows
                .iter()
                .filter_map(|(name, ..)| Some((name.as_str(), table.figure(name, figure)?.0)))
                .collect();
            let most = bars.iter().map(|(_, value)| *value).fold(1.0, f64::max);
            for (name, value) in bars {
                let width = 380.0 * value / most;
                let fill = if name.starts_with("redlock") {
                    "#2b7a3d"
                } else if name.starts_with("floor") {
                    "#999"
                } else {
                    "#b5652b"
                };
                let _fits = writeln!(
                    body,
                    r#"<text x="210" y="{}" text-anchor="end">{name}</text><rect x="218" y="{y}" width="{width:.1}" height="14" fill="{fill}"/><text x="{:.1}" y="{}">{}</text>"#,
                    y + 11.0,
                    224.0 + width,
                    y + 11.0,
                    short(value)
                );
                y += 19.0;
            }
            y += 26.0;
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"{y:.0}\" viewBox=\"0 0 680 {y:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}
