//! `petstore api`: any request.

use std::path::{Path, PathBuf};

use http::{HeaderMap, StatusCode};
use petstore_client::operations::RawRequest;
use petstore_client::{Client, Error, Method};
use serde_json::{Map, Value};

use super::dry_run;
use super::fields;
use crate::error::{CliError, Invalid, Kind, Result};
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

    /// add a field: number, true, false, null, text or @FILE; may be repeated
    #[arg(short = 'F', long = "field", value_name = "NAME=VALUE", value_parser = pair)]
    typed_fields: Vec<(String, String)>,

    /// send this body; @FILE reads it from a file, @- from standard input
    #[arg(short, long, value_name = "DATA", conflicts_with_all = ["raw_fields", "typed_fields", "input"])]
    data: Option<String>,

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

    /// do not show the body of the response
    #[arg(long)]
    silent: bool,

    /// follow the links to further pages, and merge all into one list
    #[arg(long, conflicts_with_all = ["include", "input", "data", "silent"])]
    paginate: bool,

    /// show the request without sending it
    #[arg(long)]
    dry_run: bool,
}

/// Splits `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), Invalid> {
    match split(text, '=') {
        Some(pair) => Ok(pair),
        None => Err(Invalid::new("is not NAME=VALUE")),
    }
}

/// Splits `NAME: VALUE`.
fn header(text: &str) -> Result<(String, String), Invalid> {
    let Some((name, value)) = split(text, ':') else {
        return Err(Invalid::new("is not `NAME: VALUE`"));
    };
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn split(text: &str, at: char) -> Option<(String, String)> {
    let (name, value) = text.split_once(at)?;
    if name.trim().is_empty() {
        return None;
    }
    Some((name.to_owned(), value.to_owned()))
}

impl Api {
    pub(crate) async fn run(
        self,
        connector: &Connector,
        printer: &Printer,
        ui: &Ui,
        reader: &mut Reader,
    ) -> Result<()> {
        let output = printer.start_or(OutputFormat::Json, ANY)?;
        self.refuse_authorization()?;
        let body = self.body(reader).await?;
        let method = self.method(&body);
        self.refuse_pages_of(&method)?;
        if self.dry_run {
            let client = dry_run::client(connector.settings())?;
            let request = self.request(&client, method, body).build()?;
            return dry_run::show(&request, output, connector, printer, ui);
        }
        let purpose = purpose(&method);
        let client = connector.connect(purpose).await?;
        let request = self.request(&client, method, body);
        if self.paginate {
            return all_pages(ui, output, request).await;
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                if self.include {
                    show_refusal(ui, &error);
                }
                return Err(error.into());
            }
        };
        if self.include {
            let meta = response.meta();
            printer.print(&head(meta.status(), meta.headers()))?;
        }
        if self.silent {
            return Ok(());
        }
        let written = write_body(printer, output, &response);
        if purpose.is_read() {
            return written;
        }
        let written = written.and_then(|()| printer.flush());
        written.map_err(|error| error.after("the request was processed"))
    }

    fn refuse_authorization(&self) -> Result<()> {
        for (name, _) in &self.headers {
            if name.eq_ignore_ascii_case("authorization") {
                let problem = "`-H Authorization` would replace the API key";
                let hint = "leave it out; each request carries the key";
                return Err(CliError::usage(problem).hint(hint));
            }
        }
        Ok(())
    }

    fn method(&self, body: &Body) -> Method {
        match (&self.method, body) {
            (Some(method), _) => method.clone(),
            (None, Body::None) => Method::GET,
            (None, _) => Method::POST,
        }
    }

    /// Refuses to follow the pages of another method than `GET`.
    fn refuse_pages_of(&self, method: &Method) -> Result<()> {
        if !self.paginate || method == Method::GET {
            return Ok(());
        }
        let problem = format!("`--paginate` follows the pages of a GET, not of a {method}");
        let hint = "with `-X GET`, the fields become the query of the first page";
        Err(CliError::usage(problem).hint(hint))
    }

    /// Builds the request. `-f` and `-F` become the query of a `GET`.
    fn request(&self, client: &Client, method: Method, body: Body) -> RawRequest {
        let mut request = client.request(method, &self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value.as_str());
        }
        match body {
            Body::None => request,
            Body::Bytes(bytes) => request.body("application/json", bytes),
            Body::Query(fields) => request.queries(fields),
            Body::Json(fields) => request.json(&fields),
        }
    }

    /// Reads the fields, the data or the input.
    async fn body(&self, reader: &mut Reader) -> Result<Body> {
        if let Some(file) = &self.input {
            let bytes = reader.read(file, "the body", MAX_BODY).await?;
            return Ok(Body::Bytes(bytes));
        }
        if let Some(data) = &self.data {
            let Some(file) = data.strip_prefix('@') else {
                return Ok(Body::Bytes(data.clone().into_bytes()));
            };
            let file = Path::new(file);
            let bytes = reader.read(file, "the body", MAX_BODY).await?;
            return Ok(Body::Bytes(bytes));
        }
        let fields = self.fields(reader).await?;
        if fields.is_empty() {
            return Ok(Body::None);
        }
        if let Some(Method::GET | Method::HEAD) = self.method {
            let query = fields.into_iter().map(as_query);
            return Ok(Body::Query(query.collect()));
        }
        Ok(Body::Json(fields::nested(fields)?))
    }

    /// Returns the fields of `-f` and `-F`.
    async fn fields(&self, reader: &mut Reader) -> Result<Vec<(String, Value)>> {
        let mut fields = Vec::new();
        for (name, text) in &self.raw_fields {
            fields.push((name.clone(), Value::from(text.as_str())));
        }
        for (name, text) in &self.typed_fields {
            let value = match text.strip_prefix('@') {
                Some(file) => read_text(Path::new(file), reader).await?.into(),
                None => typed(text),
            };
            fields.push((name.clone(), value));
        }
        Ok(fields)
    }
}

fn purpose(method: &Method) -> Purpose {
    if method.is_safe() {
        Purpose::Read
    } else if method == Method::DELETE {
        Purpose::Delete
    } else {
        Purpose::Change
    }
}

/// Shows the head and the body of an error response, if there is one.
fn show_refusal(ui: &Ui, error: &Error) {
    let (Some(status), Some(headers)) = (error.status(), error.headers()) else {
        return;
    };
    let mut text = head(status, headers);
    if let Some(body) = error.body() {
        text += &escape::lines(&String::from_utf8_lossy(body));
    }
    ui.trace(&text);
}

async fn read_text(file: &Path, reader: &mut Reader) -> Result<String> {
    let bytes = reader.read(file, "a field", MAX_BODY).await?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => {
            let file = file.display();
            Err(CliError::input(format!("{file} is not UTF-8")))
        }
    }
}

/// Returns a field as a parameter of a query.
fn as_query((name, value): (String, Value)) -> (String, String) {
    match value {
        Value::String(text) => (name, text),
        other => (name, to_text(&other)),
    }
}

/// The body or query of a request.
enum Body {
    None,
    Bytes(Vec<u8>),
    Query(Vec<(String, String)>),
    Json(Map<String, Value>),
}

/// Merges all pages into one list.
async fn all_pages(ui: &Ui, mut output: Output, request: RawRequest) -> Result<()> {
    let mut pages = request.pages();
    while let Some(page) = pages.try_next().await? {
        let Ok(rows) = serde_json::from_slice::<Vec<Value>>(&page) else {
            let problem = "the response is not a JSON array, which `--paginate` needs";
            return Err(CliError::new(Kind::Decode, problem));
        };
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
        _ => match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => text.into(),
        },
    }
}

fn write_body(printer: &Printer, output: Output, body: &[u8]) -> Result<()> {
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
