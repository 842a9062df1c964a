//! `--assume`: what the specification leaves open.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::outcome::CliError;
use crate::{server::Builder, state::BanPolicy, text::parse_name};

const UNKNOWN: &str = "unknown assumption; assumptions: default-status, paging, window, cors, \
                       rate-headers, ban-after, ban-within, ban-for";

/// Applies assumptions to a builder. The last one of a name counts.
pub(super) fn apply<'a>(
    assumptions: impl Iterator<Item = &'a str>,
    mut builder: Builder,
) -> Result<Builder, CliError> {
    let mut ban = BanPolicy::default();
    for assumption in assumptions {
        builder = assume(assumption, builder, &mut ban)
            .map_err(|problem| CliError::usage(format!("--assume {assumption}: {problem}")))?;
    }
    Ok(builder.ban(ban))
}

fn assume(assumption: &str, builder: Builder, ban: &mut BanPolicy) -> Result<Builder, String> {
    let (name, value) = assumption.split_once('=').ok_or("write NAME=VALUE")?;
    match name {
        "default-status" => return Ok(builder.default_status(named(value)?)),
        "paging" => return Ok(builder.paging(is_on(value)?)),
        "window" => return Ok(builder.window(named(value)?)),
        "cors" => return Ok(builder.cors(is_on(value)?)),
        "rate-headers" => return Ok(builder.rate_headers(named(value)?)),
        "ban-after" => match value.parse() {
            Ok(after @ 0..=BanPolicy::MAX_AFTER) => ban.after = after,
            _ => return Err(format!("a number from 0 to {}", BanPolicy::MAX_AFTER)),
        },
        "ban-within" => ban.within = seconds(value)?,
        "ban-for" => ban.length = seconds(value)?,
        _ => return Err(UNKNOWN.to_owned()),
    }
    Ok(builder)
}

fn is_on(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("write on or off".to_owned()),
    }
}

fn named<T: DeserializeOwned>(value: &str) -> Result<T, String> {
    parse_name(value).map_err(|error| error.to_string())
}

/// Parses whole seconds, up to ten years.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds @ 0..=316_224_000) => Ok(Duration::from_secs(seconds)),
        _ => Err("whole seconds, from 0 to 316224000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::MockServer;

    #[test]
    fn applies_each_assumption_and_says_what_is_wrong() {
        let apply = |assumption: &str| apply([assumption].into_iter(), MockServer::builder());
        let guide = include_str!("../../guide/specification.md");
        let flags = include_str!("flags.rs");
        for (name, value) in [
            ("default-status", "sold"),
            ("paging", "off"),
            ("window", "sliding"),
            ("cors", "off"),
            ("rate-headers", "day"),
            ("ban-after", "5"),
            ("ban-within", "30"),
            ("ban-for", "0"),
        ] {
            assert!(apply(&format!("{name}={value}")).is_ok(), "{name}");
            let error = apply(&format!("{name}=?")).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("--assume {name}=?: ")) && !error.contains("unknown"),
                "{error}"
            );
            assert!(UNKNOWN.contains(name), "{name}");
            assert!(guide.contains(&format!("--assume {name}=")), "{name}");
            assert!(flags.contains(&format!("/// {name}=")), "{name}");
        }
        assert!(
            apply("plan=free")
                .unwrap_err()
                .to_string()
                .ends_with(UNKNOWN)
        );
        assert!(
            apply("paging")
                .unwrap_err()
                .to_string()
                .contains("NAME=VALUE")
        );
    }
}
