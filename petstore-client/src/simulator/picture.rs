//! Draws the picture in the README: the same requests with this client and with common policies.

use std::fmt::Write as _;

use super::world::client::Contender;
use super::world::run::run;
use super::world::service::Model;
use super::world::setup::Setup;
use super::world::window::SECOND;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guide/rate_limiter.svg");
const RATE: u64 = 300;
const TASKS: usize = 16;
/// The number of requests that the quota allows in 4 5/6 minutes.
const JOBS: u64 = RATE * 29 / 6;
const MINUTES: i64 = 20;
/// The seconds that one bar stands for, its width, and the height of a row.
const SECONDS: usize = 10;
const WIDTH: usize = 5;
const HEIGHT: f64 = 44.0;

/// Draws a bar for `count` requests, above or below the row's line.
fn bar(svg: &mut String, place: usize, count: u32, (line, colour): (f64, &str), up: bool) {
    if count > 0 {
        let height = (f64::from(count) / (SECONDS * 100) as f64).sqrt().min(1.0) * HEIGHT;
        let top = if up { line - height } else { line };
        let left = place * WIDTH;
        let width = WIDTH - 1;
        writeln!(svg, r#"<rect x="{left}" y="{top:.1}" width="{width}" height="{height:.1}" fill="{colour}"/>"#).unwrap();
    }
}

fn picture() -> String {
    let width = MINUTES as usize * 60 / SECONDS * WIDTH;
    let mut svg = String::new();
    let policies = [
        (Contender::Limiter, "petstore-client"),
        (Contender::SharedPause, "all tasks pause after a 429"),
        (Contender::RetryAfter, "each request obeys Retry-After"),
        (Contender::Backoff, "only exponential back-off"),
    ];
    let row = 1.5 * HEIGHT + 30.0;
    let height = row * policies.len() as f64 + 48.0;
    writeln!(svg, r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="-24 0 {} {height}" font-family="sans-serif" font-size="13">"#, width + 48).unwrap();
    writeln!(
        svg,
        r##"<rect x="-24" width="{}" height="{height}" fill="#fff"/>"##,
        width + 48
    )
    .unwrap();
    for (number, (contender, name)) in policies.into_iter().enumerate() {
        let mut setup = Setup::new(contender, Model::new(RATE), TASKS, JOBS, 1);
        setup.horizon = MINUTES * 60 * SECOND;
        let out = run(&setup);
        let end = match out.admitted {
            JOBS.. => format!("done after {} s", out.finished / SECOND),
            some => format!("{some} of {JOBS} done"),
        };
        let bans = if out.bans > 0 {
            format!(", banned {} times", out.bans)
        } else {
            String::new()
        };
        let top = row * number as f64 + 20.0;
        writeln!(svg, r#"<text x="0" y="{top}"><tspan font-weight="bold">{name}</tspan>: {end}, {} refused{bans}</text>"#, out.refusals).unwrap();
        let line = top + 8.0 + HEIGHT;
        writeln!(
            svg,
            r##"<line x2="{width}" y1="{line}" y2="{line}" stroke="#999"/>"##
        )
        .unwrap();
        for (place, seconds) in out.seconds.chunks(SECONDS).enumerate() {
            let sum = |kind: usize| seconds.iter().map(|counts| counts[kind]).sum();
            bar(&mut svg, place, sum(0), (line, "#2a7ab8"), true);
            bar(&mut svg, place, sum(1), (line, "#c8402f"), false);
        }
    }
    for minute in (0..=MINUTES).step_by(5) {
        let x = minute as usize * 60 / SECONDS * WIDTH;
        writeln!(
            svg,
            r#"<text x="{x}" y="{}" text-anchor="middle" font-size="11">{minute} min</text>"#,
            height - 28.0
        )
        .unwrap();
    }
    writeln!(svg, r##"<text y="{}" font-size="11">Simulation of {JOBS} requests at {RATE} a minute, {TASKS} tasks. <tspan fill="#2a7ab8">Blue: answered</tspan>, <tspan fill="#c8402f">red: refused</tspan>, per {SECONDS} seconds.</text>"##, height - 8.0).unwrap();
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn the_picture_is_what_the_simulator_draws() {
    let message =
        "draw it again: cargo test -p petstore-client --lib draw_the_picture -- --ignored";
    assert!(
        std::fs::read_to_string(FILE).unwrap_or_default() == picture(),
        "{message}"
    );
}

#[test]
#[ignore = "it draws the picture, which the other test compares"]
fn draw_the_picture() {
    std::fs::write(FILE, picture()).unwrap();
}
