//! `petstore api`: any request.

use std::path::{Path, PathBuf};

use http::{HeaderMap, StatusCode};
use petstore_client::operations::RawRequest;
use petstore_client::{Client, Method};
use serde_json::{Map, Value};

use super::dry_run;
use crate::error::{CliError, Invalid, Kind};
use crate::escape::{self, to_text};
use crate::input::{MAX_BODY, Reader};
use crate::output::{ANY, Output, OutputFormat, Printer};
use crate::session::{Connector, Purpose};
use crate::ui::Ui;

/// Send any request.
#[derive(Debug, clap::Args)]
pub(crate) struct Api {
    /// the path, relative to the base URL; may include a query
    path: String,

    /// [default: GET, or POST with fields or an input]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<Method>,

    /// add a text field; may be repeated
    #[arg(short = 'f', long = "raw-field", value_name = "NAME=VALUE", value_parser = pair)]
    raw_fields: Vec<(String, String)>,

    /// add a field: number, true, false, null, text, or @FILE; may be repeated
    #[arg(short = 'F', long = "field", value_name = "NAME=VALUE", value_parser = pair)]
    typed_fields: Vec<(String, String)>,

    /// send a file as the body; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw_fields", "typed_fields"])]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    input: Option<PathBuf>,

    /// add a header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,

    /// also show the status and headers of the response
    #[arg(short, long)]
    include: bool,

    /// follow the links to further pages, and merge all into one list
    #[arg(long, conflicts_with_all = ["include", "input"])]
    paginate: bool,

    /// show the request without sending it
    #[arg(long)]
    dry_run: bool,
}

/// Splits `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), Invalid> {
    split(text, '=').ok_or_else(|| Invalid::new("is not NAME=VALUE"))
}

/// Splits `NAME: VALUE`.
fn header(text: &str) -> Result<(String, String), Invalid> {
    let (name, value) = split(text, ':').ok_or_else(|| Invalid::new("is not `NAME: VALUE`"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn split(text: &str, at: char) -> Option<(String, String)> {
    let (name, value) = text
        .split_once(at)
        .filter(|(name, _)| !name.trim().is_empty())?;
    Some((name.to_owned(), value.to_owned()))
}

impl Api {
    pub(crate) async fn run(
        self,
        connector: &Connector,
        printer: &Printer,
        ui: &Ui,
        reader: &mut Reader,
    ) -> Result<(), CliError> {
        let output = printer.start_or(OutputFormat::Json, ANY)?;
        if self
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            let problem = "`-H Authorization` would replace the API key";
            return Err(CliError::usage(problem).hint("leave it out; each request carries the key"));
        }
        let (dry_run, paginate, include) = (self.dry_run, self.paginate, self.include);
        let body = self.body(reader).await?;
        let method = match (&self.method, &body) {
            (Some(method), _) => method.clone(),
            (None, Body::None) => Method::GET,
            (None, _) => Method::POST,
        };
        if paginate && method != Method::GET {
            let problem = format!("`--paginate` follows the pages of a GET, not of a {method}");
            return Err(CliError::usage(problem)
                .hint("with `-X GET`, the fields become the query of the first page"));
        }
        if dry_run {
            let client = dry_run::client(connector.settings())?;
            let request = self.request(&client, method, body).build()?;
            return dry_run::show(&request, output, printer, ui);
        }
        let purpose = if method.is_safe() {
            Purpose::Read
        } else {
            Purpose::Change
        };
        let client = connector.connect(purpose).await?;
        let request = self.request(&client, method, body);
        if paginate {
            return all_pages(ui, output, request).await;
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                if let (true, Some(status), Some(headers)) =
                    (include, error.status(), error.headers())
                {
                    let body = error.body().map(|body| String::from_utf8_lossy(body));
                    let body = body.as_deref().map(escape::lines).unwrap_or_default();
                    ui.trace(&format!("{}{body}", head(status, headers)));
                }
                return Err(error.into());
            }
        };
        if include {
            printer.print(&head(response.meta().status(), response.meta().headers()))?;
        }
        write_body(printer, output, &response)
    }

    /// Builds the request. `-f` and `-F` become the query of a `GET`.
    fn request(self, client: &Client, method: Method, body: Body) -> RawRequest {
        let reads = method == Method::GET || method == Method::HEAD;
        let mut request = client.request(method, &self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value.as_str());
        }
        match body {
            Body::None => request,
            Body::Bytes(bytes) => request.body("application/json", bytes),
            Body::Fields(fields) if reads => {
                request.queries(fields.into_iter().map(|(name, value)| match value {
                    Value::String(text) => (name, text),
                    other => (name, to_text(&other)),
                }))
            }
            Body::Fields(fields) => request.json(&fields),
        }
    }

    /// Reads the fields or the input.
    async fn body(&self, reader: &mut Reader) -> Result<Body, CliError> {
        if let Some(file) = &self.input {
            return Ok(Body::Bytes(reader.read(file, "the body", MAX_BODY).await?));
        }
        let raw = self.raw_fields.iter().cloned();
        let mut fields: Map<_, _> = raw.map(|(name, text)| (name, text.into())).collect();
        for (name, text) in &self.typed_fields {
            let value = match text.strip_prefix('@') {
                Some(file) => {
                    let bytes = reader.read(Path::new(file), "a field", MAX_BODY).await?;
                    let not_text = |_| CliError::new(Kind::Input, format!("{file} is not UTF-8"));
                    String::from_utf8(bytes).map_err(not_text)?.into()
                }
                None => typed(text),
            };
            fields.insert(name.clone(), value);
        }
        Ok(if fields.is_empty() {
            Body::None
        } else {
            Body::Fields(fields)
        })
    }
}

/// The body or query of a request.
enum Body {
    None,
    Bytes(Vec<u8>),
    Fields(Map<String, Value>),
}

/// Merges all pages into one list.
async fn all_pages(ui: &Ui, mut output: Output, request: RawRequest) -> Result<(), CliError> {
    let mut pages = request.pages();
    while let Some(page) = pages.try_next().await? {
        let rows: Vec<Value> = serde_json::from_slice(&page).map_err(|_| {
            let problem = "the response is not a JSON array, which `--paginate` needs";
            CliError::new(Kind::Decode, problem)
        })?;
        output.rows(&rows)?;
    }
    ui.late_field(output.finish()?);
    Ok(())
}

/// Parses a value: a whole number, `true`, `false`, `null`, or else text.
fn typed(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        number => number
            .parse::<i64>()
            .map_or_else(|_| text.into(), Value::from),
    }
}

fn write_body(printer: &Printer, output: Output, body: &[u8]) -> Result<(), CliError> {
    match serde_json::from_slice::<Value>(body) {
        Ok(document) => output.document(&document),
        Err(_) if printer.is_set() => {
            let problem = "the response is not JSON, which `-o`, `--fields` and `--jq` need";
            Err(CliError::new(Kind::Decode, problem))
        }
        Err(_) if printer.screen().is_terminal() => {
            printer.print(&escape::lines(&String::from_utf8_lossy(body)))
        }
        Err(_) => printer.write(body),
    }
}

fn head(status: StatusCode, headers: &HeaderMap) -> String {
    let mut head = format!("HTTP {status}\n");
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        head += &format!("{name}: {}\n", escape::line(&value));
    }
    head + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_numbers_booleans_null_and_text() {
        assert_eq!(
            [typed("7"), typed("-7"), typed("7.5")],
            [json!(7), json!(-7), json!("7.5")]
        );
        assert_eq!(
            [typed("true"), typed("null"), typed("Rex")],
            [json!(true), json!(null), json!("Rex")]
        );
    }
}
