//! Responses: drawn from a seed, then damaged byte by byte, cut, stalled or sent drop by drop.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::KEY;
use crate::client::Act;

/// A response. In its texts `{key}` stands for the key, `{escaped}` for the key as JSON may escape it,
/// `{other}` for the address of another origin, `{deep}` and `{long}` for a lot of text.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: &'static str,
    fields: Vec<(&'static str, &'static str)>,
    framing: Framing,
    body: &'static str,
    damage: Vec<Damage>,
    pace: Option<(usize, Duration)>,
    end: End,
}

/// How the response announces the length of its body, perhaps wrongly.
#[derive(Debug, Clone)]
enum Framing {
    Length(Option<&'static str>),
    /// With the size of its only chunk.
    Chunked(Option<&'static str>),
    Close,
}

/// What is done to the bytes.
#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Remove(Index, usize),
    Insert(Index, &'static str),
    Repeat(Index, usize, usize),
}

/// How the response ends, after some of its bytes.
#[derive(Debug, Clone)]
enum End {
    Keep,
    Close(Index),
    Reset(Index),
    Stall(Index),
}

const PET: &str = r#"{"id":1,"name":"Rex","categoryId":7,"status":"available"}"#;

/// Alternatives, separated by `|`.
const STATUSES: &str = "\
    200 OK|201 Created|429 Too Many Requests|401 No|\
    404 Not Found|500 Oops|503 Busy|100 Continue|101 Switching Protocols|103 Early Hints|\
    204 No Content|206 Part|299 Odd|301 Moved|302 Found|303 See Other|304 Same|307 There|\
    308 There|400 Bad|403 No|405 No|408 Slow|410 Gone|418 Tea|451 No|502 Bad|504 Late|599 Odd|\
    600 Odd|999 Odd|099 Odd|20 OK|2000 OK|-20 OK||200";

const NAMES: &str = "\
    X-RateLimit-Limit|X-RateLimit-Remaining|X-RateLimit-Reset|Retry-After|Retry-After|\
    Date|Link|Link|Location|Content-Type|Content-Encoding|Content-Length|\
    Transfer-Encoding|Connection|Deprecation|Sunset|Set-Cookie|WWW-Authenticate|Upgrade|Trailer|\
    X-Odd|";

const VALUES: &str = "\
    0|1|2|30|60|-1|-9223372036854775808|1.5|1e30|NaN|inf|0x10|99999|999999999|1795255260|\
    1795255260000|9223372036854775807|18446744073709551615|18446744073709551616|5, 40|| |soon|\
    \u{ff}\u{fe}|Sat, 21 Nov 2026 10:00:00 GMT|Sat, 21 Nov 2026 10:00:30 GMT|\
    Saturday, 21-Nov-26 10:00:09 GMT|Sat Nov 21 10:01:00 2026|Fri, 31 Dec 9999 23:59:59 GMT|\
    Thu, 01 Jan 1970 00:00:00 GMT|Sun, 99 Dec 9999 99:99:99 GMT|</v1/pets?cursor=1>; rel=next|\
    <?cursor=2>; rel=\"next\"|<>; rel=next|<#x>; rel=next|<{other}/v1/pets>; rel=next|\
    <//{key}@127.0.0.1/>; rel=next|<?key={key}>; rel=next|\
    </v1/pets?key={key}>; rel=successor-version|<<>>;;;=,\"\\|<http://[::1>; rel=next|\
    {other}/v1/pets|/login?key={key}|{key}|{long}|gzip|identity|deflate, gzip|chunked|\
    gzip, chunked|close|keep-alive|upgrade|h2c|true|@1700000000|application/json|\
    text/html; charset=utf-16";

/// Fields that mislead a careless client. Random names and values rarely form them.
const LURES: &[(&str, &str)] = &[
    ("Location", "{other}/v1/pets"),
    ("Link", "<{other}/v1/pets>; rel=next"),
    ("Retry-After", "30"),
];

const BODIES: &[&str] = &[
    "[]",
    r#"[{"id":1,"name":"Rex","categoryId":7,"status":"available"}]"#,
    PET,
    PET,
    r#"[{"id":1,"name":"Rex","categoryId":7},{"id":1,"name":"Rex","categoryId":7}]"#,
    r#"{"code":"rate_limit_exceeded","message":"wait","status":429}"#,
    r#"{"code":"key_banned","message":"no","status":429}"#,
    r#"{"code":{"a":1},"message":["{key}"],"status":"429"}"#,
    r#"{"code":"{key}","message":"{escaped} is not known"}"#,
    r#"{"message":"{escaped}"}"#,
    r#"{"type":"about:blank","title":"{key}","detail":"{escaped}","status":400}"#,
    r#"[{"id":"{key}"}]"#,
    r#"[{"{escaped}":1,"id":"x"}]"#,
    r#"[{"id":1,"name":2,"categoryId":3}]"#,
    r#"[{"id":NaN,"name":"a","categoryId":1}]"#,
    r#"[{"id":1e400,"name":"a","categoryId":1}]"#,
    r#"[{"id":-9223372036854775809,"name":"a","categoryId":1}]"#,
    r#"[{"id":1,"name":"\ud800","categoryId":1}]"#,
    "[{\"id\":1,\"name\":\"\u{ff}\",\"categoryId\":1}]",
    "[{\"id\":1,\"name\":\"\u{1b}[2J\",\"categoryId\":1}]",
    r#"[{"id":1,"id":2,"name":"a","categoryId":1}]"#,
    "{deep}",
    "[{\"id\":1,\"name\":\"a\",\"categoryId\":1,\"more\":{deep}",
    "{long}",
    "",
    "null",
    "[",
    "{",
    "<html>{key}</html>",
    "\u{1f}\u{8b}\u{08}",
    "\u{1b}]0;x\u{07}",
    "\u{0}",
    "[[[]]]",
    "123",
    "\"{key}\"",
];

/// Draws one of the texts between bars.
fn one_of(texts: &'static str) -> impl Strategy<Value = &'static str> {
    select(texts.split('|').collect::<Vec<_>>())
}

/// Draws a response.
fn reply() -> impl Strategy<Value = Reply> {
    let length = one_of("0|1|9999|9223372036854775807|18446744073709551616|-1|5, 5|x");
    let size = one_of("0|1|ffff|fffffffffffffffff|-1|0x5|5;ext=\"|g|");
    let framing = prop_oneof![
        6 => Just(Framing::Length(None)),
        1 => length.prop_map(|wrong| Framing::Length(Some(wrong))),
        2 => Just(Framing::Chunked(None)),
        1 => size.prop_map(|wrong| Framing::Chunked(Some(wrong))),
        1 => Just(Framing::Close),
    ];
    let bytes = one_of("\r\n|\r\n\r\n|\0|\n|:| |HTTP/1.1 429 X\r\n\r\n|\u{ff}");
    let damage = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, by)| Damage::Flip(at, by)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (any::<Index>(), bytes).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), 1..40_usize, 1..400_usize)
            .prop_map(|(at, length, times)| Damage::Repeat(at, length, times)),
    ];
    let end = prop_oneof![
        6 => Just(End::Keep),
        1 => any::<Index>().prop_map(End::Close),
        1 => any::<Index>().prop_map(End::Reset),
        1 => any::<Index>().prop_map(End::Stall),
    ];
    let damage = prop_oneof![2 => Just(vec![]), 1 => vec(damage, 1..4)];
    let pace = (1..20_usize, 1..1_000_u64);
    let pace = prop::option::weighted(0.1, pace.prop_map(|(n, ms)| (n, Duration::from_millis(ms))));
    let field = prop_oneof![4 => (one_of(NAMES), one_of(VALUES)), 1 => select(LURES)];
    let fields = vec(field, 0..4);
    // The status and the body are often valid, so that the other parts have an effect.
    let status = prop_oneof![
        one_of("200 OK|201 Created|429 Wait|401 No"),
        one_of(STATUSES)
    ];
    let body = prop_oneof![select(&BODIES[..4]), select(BODIES)];
    (status, fields, framing, body, damage, pace, end).prop_map(
        |(status, fields, framing, body, damage, pace, end)| Reply {
            status,
            fields,
            framing,
            body,
            damage,
            pace,
            end,
        },
    )
}

/// Draws the responses of a server to successive requests.
pub(crate) fn replies() -> impl Strategy<Value = Vec<Reply>> {
    vec(reply(), 1..6)
}

impl Reply {
    /// Returns how long a client must not send anything, if the response says so unambiguously.
    pub(super) fn wait(&self) -> Option<Duration> {
        let is_clear = self.status.starts_with("429 ")
            && matches!(self.framing, Framing::Length(None))
            && self.damage.is_empty()
            && self.pace.is_none()
            && matches!(self.end, End::Keep)
            && self.fields.iter().all(|(name, _)| {
                *name == "Retry-After" || name.starts_with("X-RateLimit") || *name == "Link"
            });
        if !is_clear {
            return None;
        }
        let fields = self.fields.iter();
        let waits = fields.filter(|(name, _)| *name == "Retry-After");
        let waits = waits.filter_map(|(_, value)| value.parse().ok());
        waits
            .filter(|wait| *wait < 100_000)
            .max()
            .map(Duration::from_secs)
    }

    pub(super) fn bytes(&self, other: &str) -> Vec<u8> {
        let text = |text: &str| -> Vec<u8> {
            let escape = |c: char| format!("\\u{:04x}", u32::from(c));
            let escaped: String = KEY.chars().map(escape).collect();
            let text = text.replace("{key}", KEY).replace("{escaped}", &escaped);
            let text = text.replace("{other}", other);
            let text = text.replace("{long}", &" x".repeat(10_000));
            let text = text.replace("{deep}", &"[".repeat(10_000));
            // Each character stands for one byte, so that every byte can occur.
            text.chars()
                .map(|c| u8::try_from(u32::from(c)).unwrap())
                .collect()
        };
        let body = text(self.body);
        let mut bytes = Vec::new();
        bytes.extend(text(&format!("HTTP/1.1 {}\r\n", self.status)));
        for (name, value) in &self.fields {
            bytes.extend(text(&format!("{name}: {value}\r\n")));
        }
        let (length, size) = (body.len().to_string(), format!("{:x}", body.len()));
        bytes.extend(match &self.framing {
            Framing::Length(wrong) => {
                let head = format!("Content-Length: {}\r\n\r\n", wrong.unwrap_or(&length));
                [head.as_bytes(), &body].concat()
            }
            Framing::Chunked(wrong) => {
                let size = wrong.unwrap_or(&size);
                let head = format!("Transfer-Encoding: chunked\r\n\r\n{size}\r\n");
                [head.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat()
            }
            Framing::Close => [b"\r\n", &*body].concat(),
        });
        self.damage
            .iter()
            .for_each(|damage| damage.apply(&mut bytes));
        bytes
    }

    /// Returns what the server does, and how many bytes it writes at most.
    pub(super) fn act(&self, mut bytes: Vec<u8>) -> Act {
        let (at, act): (_, fn(Vec<u8>) -> Act) = match &self.end {
            End::Keep if matches!(self.framing, Framing::Close) => (None, Act::Cut),
            End::Keep => (None, Act::Answer),
            End::Close(at) => (Some(at), Act::Cut),
            End::Reset(at) => (Some(at), Act::Reset),
            End::Stall(at) => (Some(at), Act::Stall),
        };
        bytes.truncate(at.map_or(bytes.len(), |at| at.index(bytes.len() + 1)));
        match self.pace {
            Some((size, pause)) => {
                let pieces = bytes.chunks(size).take(50).map(<[u8]>::to_vec).collect();
                Act::Drip(pieces, pause, Box::new(act(vec![])))
            }
            None => act(bytes),
        }
    }
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let part = |at: &Index, length: usize| {
            let start = at.index(bytes.len() + 1);
            start..(start + length).min(bytes.len())
        };
        match self {
            Self::Flip(at, by) => {
                let at = at.index(bytes.len() + 1);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= by;
                }
            }
            Self::Remove(at, length) => drop(bytes.drain(part(at, *length))),
            Self::Insert(at, more) => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(
                    at..at,
                    more.chars().map(|c| u8::try_from(u32::from(c)).unwrap()),
                );
            }
            Self::Repeat(at, length, times) => {
                let part = part(at, *length);
                let again = bytes[part.clone()].repeat(*times);
                bytes.splice(part, again);
            }
        }
    }
}
