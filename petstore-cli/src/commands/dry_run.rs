//! `--dry-run`: shows the request as a `curl` command. The key stays a variable, and so does a missing
//! base URL.

use http::Request;
use petstore_client::Client;
use petstore_client::bytes::Bytes;
use petstore_client::transport::Connection;
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::error::{CliError, Result};
use crate::escape;
use crate::output::Output;
use crate::session::USER_AGENT;
use crate::settings::Settings;

/// A placeholder for a missing base URL.
const NOWHERE: &str = "https://base.invalid";
const BASE_URL: &str = "$PETSTORE_BASE_URL";

/// Returns a client that builds requests and needs no key.
pub(crate) fn client(settings: &Settings) -> Result<Client> {
    let base_url = match settings.has_base_url() && !settings.is_mock() {
        true => settings.base_url()?.to_string(),
        false => NOWHERE.to_owned(),
    };
    let builder = Client::builder(base_url)
        .api_key("dry-run")
        .user_agent(USER_AGENT)
        .connection(Connection::new().allow_insecure_http(true));
    Ok(builder.build()?)
}

/// Writes the command, or the request with the command as a document if `-o` is set.
pub(crate) fn show(request: &Request<Bytes>, output: Output, context: &Context) -> Result<()> {
    let not_text = |what| CliError::input(format!("{what} is not UTF-8"));
    let address = request.uri().to_string();
    let (url, quoted) = match address.strip_prefix(NOWHERE) {
        Some(rest) => (
            format!("{BASE_URL}{rest}"),
            format!("\"{BASE_URL}\"{}", escape::shell(rest)),
        ),
        None => (address.clone(), escape::shell(&address)),
    };
    let body = std::str::from_utf8(request.body()).map_err(|_| not_text("the body"))?;
    let key = context.key_expression();
    let method = request.method().as_str();
    let option = match method {
        "GET" => String::new(),
        "HEAD" => "--head ".to_owned(),
        other => format!("-X {other} "),
    };
    // Without this option, `curl` would send several requests for `{1,2}` and `[1-3]`.
    let globs = if quoted.contains(['{', '[']) {
        "--globoff "
    } else {
        ""
    };
    // Other users can read the arguments of `curl`, but not those of the shell's own `printf`.
    let mut curl = format!(
        "printf 'Authorization: Bearer %s' \"{key}\" |\n  curl {globs}{option}{quoted} -H @-"
    );
    let authorization: Value = format!("Bearer {key}").into();
    let mut headers = Map::from_iter([("authorization".to_owned(), authorization)]);
    for (name, value) in request.headers() {
        let value = value.to_str().map_err(|_| not_text("a header"))?;
        let header = escape::shell(&format!("{name}: {value}"));
        curl += &format!(" \\\n  -H {header}");
        headers.insert(name.to_string(), value.into());
    }
    if !body.is_empty() {
        curl += &format!(" \\\n  --data-raw {}", escape::shell(body));
    }
    context.ui().note("not sent");
    if !context.printer().is_set() {
        return context
            .printer()
            .print(format!("{}\n", escape::lines(&curl)));
    }
    let mut shown = json!({ "method": method, "url": url, "headers": headers });
    if !body.is_empty() {
        shown["body"] = body.into();
    }
    shown["curl"] = curl.into();
    output.document(&shown)
}
