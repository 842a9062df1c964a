//! `--assume`: what the specification leaves open.

use std::{fmt, str::FromStr, time::Duration};

use clap::Args;

use crate::{
    cors::Cors,
    model::PetStatus,
    server::Builder,
    state::{BanPolicy, RateHeaders, Window},
};

const ABOUT: &str = "Change an assumption about what the specification leaves open (repeatable)";

/// The names, each with its values and its default.
const ASSUMPTIONS: [(&str, &str); 8] = [
    (
        "default-status=available|pending|sold",
        "status of a pet that is created without one (default: none)",
    ),
    (
        "paging=on|off",
        "whether a page has a Link to the next page (default: on)",
    ),
    (
        "window=fixed|sliding",
        "kind of quota window: the clock's minute and the UTC day, or the last 60 and 86400 \
         seconds (default: fixed)",
    ),
    (
        "cors=ORIGIN|*|off",
        "origin whose web pages may use the service (default: *, all of them)",
    ),
    (
        "rate-headers=tightest|minute|hour|day",
        "quota in the X-RateLimit headers (default: tightest, the one with the fewest requests left)",
    ),
    (
        "ban-after=N",
        "requests before the end of Retry-After that do not cause a ban (default: 10)",
    ),
    (
        "ban-within=SECONDS",
        "seconds within which those requests are counted (default: 60)",
    ),
    (
        "ban-for=SECONDS",
        "duration of a ban in seconds; 0 disables bans (default: 300)",
    ),
];

/// Assumptions that differ from the defaults.
#[derive(Args, Clone)]
#[command(next_help_heading = "Service")]
pub(super) struct AssumeArgs {
    #[arg(
        long = "assume",
        help = ABOUT,
        long_help = long_help(),
        env = "PETSTORE_MOCK_ASSUME",
        hide_env = true,
        value_delimiter = ' ',
        value_name = "NAME=VALUE",
        value_parser = Assumption::from_str
    )]
    assumptions: Vec<Assumption>,
}

fn long_help() -> String {
    let lines = ASSUMPTIONS.map(|(form, about)| format!("{form}: {about}"));
    format!("{ABOUT}.\n\n{}", lines.join("\n\n"))
}

#[derive(Clone, Debug)]
enum Assumption {
    DefaultStatus(PetStatus),
    Paging(bool),
    Window(Window),
    Cors(Cors),
    RateHeaders(RateHeaders),
    BanAfter(u32),
    BanWithin(Duration),
    BanFor(Duration),
}

impl FromStr for Assumption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
        match name {
            "default-status" => parsed(value).map(Self::DefaultStatus),
            "paging" => match value {
                "on" => Ok(Self::Paging(true)),
                "off" => Ok(Self::Paging(false)),
                _ => Err("paging is on or off".to_owned()),
            },
            "window" => parsed(value).map(Self::Window),
            "cors" => parsed(value).map(Self::Cors),
            "rate-headers" => parsed(value).map(Self::RateHeaders),
            "ban-after" => match value.parse() {
                Ok(after @ 0..=BanPolicy::MAX_AFTER) => Ok(Self::BanAfter(after)),
                _ => Err(format!("a number from 0 to {}", BanPolicy::MAX_AFTER)),
            },
            "ban-within" => seconds(value).map(Self::BanWithin),
            "ban-for" => seconds(value).map(Self::BanFor),
            _ => {
                let names = ASSUMPTIONS.map(|(form, _)| form.split('=').next().unwrap_or(form));
                Err(format!(
                    "unknown assumption; assumptions: {}",
                    names.join(", ")
                ))
            }
        }
    }
}

fn parsed<T: FromStr<Err: fmt::Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

/// Parses whole seconds, up to ten years.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds @ 0..=316_224_000) => Ok(Duration::from_secs(seconds)),
        _ => Err("whole seconds, from 0 to 316224000".to_owned()),
    }
}

impl AssumeArgs {
    /// Applies the assumptions. The last one of a name counts.
    pub(super) fn apply(&self, mut builder: Builder) -> Builder {
        let mut ban = BanPolicy::default();
        for assumption in &self.assumptions {
            match assumption.clone() {
                Assumption::DefaultStatus(status) => builder = builder.default_status(status),
                Assumption::Paging(paging) => builder = builder.paging(paging),
                Assumption::Window(window) => builder = builder.window(window),
                Assumption::Cors(cors) => builder = builder.cors(cors),
                Assumption::RateHeaders(headers) => builder = builder.rate_headers(headers),
                Assumption::BanAfter(after) => ban.after = after,
                Assumption::BanWithin(within) => ban.within = within,
                Assumption::BanFor(length) => ban.length = length,
            }
        }
        builder.ban(ban)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_assumption_and_says_what_is_wrong() {
        let guide = include_str!("../../guide/specification.md");
        for (form, _) in ASSUMPTIONS {
            let (name, values) = form.split_once('=').unwrap();
            let value = values.split('|').next().unwrap();
            let value = value.replace("ORIGIN", "http://x").replace('N', "5");
            let value = value.replace("SECO5DS", "5");
            assert!(
                format!("{name}={value}").parse::<Assumption>().is_ok(),
                "{form}"
            );
            let error = format!("{name}=?").parse::<Assumption>().unwrap_err();
            assert!(!error.contains("unknown"), "{name}: {error}");
            assert!(guide.contains(&format!("--assume {name}=")), "{name}");
        }
        let error = "plan=free".parse::<Assumption>().unwrap_err();
        assert!(error.ends_with(
            "default-status, paging, window, cors, rate-headers, ban-after, ban-within, ban-for"
        ));
        assert_eq!(
            "paging".parse::<Assumption>().unwrap_err(),
            "write NAME=VALUE"
        );
    }
}
