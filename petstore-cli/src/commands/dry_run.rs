//! `--dry-run`: a request as it would be sent, and the `curl` command that would send it. The key
//! stays a variable, and so does a base URL that is not set.

use std::fmt::Write as _;

use http::Request;
use petstore_client::{Bytes, Client};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::context::{Context, USER_AGENT};
use crate::error::{CliError, Kind};
use crate::escape;
use crate::output::Output;

/// Stands for a base URL that is not set.
const NOWHERE: &str = "https://base.invalid";
const BASE_URL: &str = "$PETSTORE_BASE_URL";

/// A request that is not sent.
#[derive(Serialize)]
struct Shown {
    method: String,
    url: String,
    headers: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    curl: String,
}

/// Returns a client that builds requests and needs no key.
pub(crate) fn client(context: &mut Context) -> Result<Client, CliError> {
    let is_set = context.settings.shown("base_url").is_some() && !context.args.wants_mock();
    let base_url = if is_set { context.settings.base_url()? } else { NOWHERE.to_owned() };
    let builder = Client::builder(base_url).api_key("dry-run").user_agent(USER_AGENT);
    Ok(builder.allow_insecure_http(true).build()?)
}

/// Writes a request: for people, or as a document where a format was asked for.
pub(crate) fn show(
    context: &mut Context,
    output: Output,
    request: &Request<Bytes>,
) -> Result<(), CliError> {
    let shown = shown(request)?;
    context.ui.note("not sent");
    if context.options.format.is_some() || context.options.jq.is_some() {
        return output.document(&shown);
    }
    let mut text = format!("{} {}\n", shown.method, shown.url);
    for (name, value) in &shown.headers {
        let _ = writeln!(text, "{name}: {}", value.as_str().unwrap_or_default());
    }
    if let Some(body) = &shown.body {
        let _ = write!(text, "\n{body}\n");
    }
    let _ = write!(text, "\n{}\n", shown.curl);
    context.print(&escape::lines(&text))
}

fn shown(request: &Request<Bytes>) -> Result<Shown, CliError> {
    let address = request.uri().to_string();
    let (url, quoted) = match address.strip_prefix(NOWHERE) {
        Some(rest) => {
            (format!("{BASE_URL}{rest}"), format!("\"{BASE_URL}\"{}", escape::shell(rest)))
        }
        None => (address.clone(), escape::shell(&address)),
    };
    let not_text = |what| CliError::new(Kind::Input, format!("{what} is not UTF-8"));
    let body = Some(request.body()).filter(|body| !body.is_empty());
    let body = body.map(|body| String::from_utf8(body.to_vec())).transpose();
    let body = body.map_err(|_| not_text("the body"))?;
    let mut headers = vec![
        ("Accept".to_owned(), "application/json".to_owned()),
        ("Authorization".to_owned(), "Bearer $PETSTORE_API_KEY".to_owned()),
    ];
    for (name, value) in request.headers() {
        let value = value.to_str().map_err(|_| not_text("a header"))?;
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name.as_str()));
        headers.push((title_case(name.as_str()), value.to_owned()));
    }
    headers.sort();
    let method = request.method().to_string();
    let mut curl = match method.as_str() {
        "GET" => format!("curl {quoted}"),
        method => format!("curl -X {method} {quoted}"),
    };
    for (name, value) in &headers {
        let header = format!("{name}: {value}");
        // Only one holds a variable.
        let word = match name.as_str() {
            "Authorization" => format!("\"{header}\""),
            _ => escape::shell(&header),
        };
        let _ = write!(curl, " \\\n  -H {word}");
    }
    if let Some(body) = &body {
        let _ = write!(curl, " \\\n  --data-raw {}", escape::shell(body));
    }
    let headers = headers.into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(Shown { method, url, headers, body, curl })
}

/// Turns `content-type` into `Content-Type`.
fn title_case(name: &str) -> String {
    let word = |word: &str| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_uppercase() + rest,
        None => word.to_owned(),
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}
