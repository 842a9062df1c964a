//! `petstore api`: any request.

use std::path::{Path, PathBuf};

use http::{HeaderMap, Method, StatusCode};
use petstore_client::operations::RawRequest;
use petstore_client::{Client, Error};
use serde_json::Value;

use super::dry_run;
use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::escape;
use crate::input::{MAX_BODY, Reader};
use crate::output::{ANY, Output, OutputFormat, Printer};
use crate::session::Purpose;
use crate::ui::Ui;

/// The usual methods. `-X` also accepts others.
pub(super) const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Send any request.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore api '/pets?limit=5'",
    "petstore api /pets --query status=sold --jq '.[].name'",
    "petstore api /store/orders -i",
    "petstore api /pets -d '{\"name\":\"Rex\",\"categoryId\":7}'";
    "Requests are authorized, rate limited and retried like all others."
))]
pub(crate) struct Api {
    /// The path, relative to the base URL; may include a query
    path: String,

    /// The method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<Method>,

    /// Add a query parameter; may be repeated
    #[arg(long = "query", value_name = "NAME=VALUE", value_parser = pair)]
    queries: Vec<(String, String)>,

    /// Send this body; @FILE reads it from a file, @- from standard input
    #[arg(short, long, value_name = "DATA", conflicts_with = "input")]
    data: Option<String>,

    /// Send a file as the body; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    input: Option<PathBuf>,

    /// Add a header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,

    /// Also show the status and headers of the response
    #[arg(short, long)]
    include: bool,

    /// Show the request without sending it
    #[arg(long)]
    dry_run: bool,
}

/// Splits `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), &'static str> {
    split(text, '=').ok_or("give NAME=VALUE")
}

/// Splits `NAME: VALUE`.
fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = split(text, ':').ok_or("give `NAME: VALUE`")?;
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
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let printer = context.printer();
        let output = printer.start_or(OutputFormat::Json, ANY)?;
        self.refuse_authorization()?;
        let body = self.body(context.reader()).await?;
        let method = self.method(body.is_some());
        if self.dry_run {
            let client = dry_run::client(context.settings())?;
            let request = self.request(&client, method, body).build()?;
            return dry_run::show(&request, output, context);
        }
        let purpose = purpose(&method);
        let client = context.connect(purpose).await?;
        let request = self.request(&client, method, body);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                if self.include {
                    show_refusal(context.ui(), &error);
                }
                return Err(error.into());
            }
        };
        if self.include {
            printer.print(head(response.status(), response.meta.headers()))?;
        }
        let written = write_body(printer, output, &response.value);
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

    fn method(&self, has_body: bool) -> Method {
        match &self.method {
            Some(method) => method.clone(),
            None if has_body => Method::POST,
            None => Method::GET,
        }
    }

    fn request(&self, client: &Client, method: Method, body: Option<Vec<u8>>) -> RawRequest {
        let mut request = client.request(method, &self.path);
        for (name, value) in &self.queries {
            request = request.query(name, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value.as_str());
        }
        match body {
            Some(body) => request.body("application/json", body),
            None => request,
        }
    }

    /// Reads the data or the input.
    async fn body(&self, reader: &Reader) -> Result<Option<Vec<u8>>> {
        let file = match (&self.input, &self.data) {
            (Some(file), _) => file,
            (None, Some(data)) => match data.strip_prefix('@') {
                Some(file) => Path::new(file),
                None => return Ok(Some(data.clone().into_bytes())),
            },
            (None, None) => return Ok(None),
        };
        let bytes = reader.read(file, "the body", MAX_BODY).await?;
        Ok(Some(bytes))
    }
}

fn purpose(method: &Method) -> Purpose {
    match method.is_safe() {
        true => Purpose::Read,
        false => Purpose::Change,
    }
}

/// Shows the head and the body of an error response, if there is one.
fn show_refusal(ui: &Ui, error: &Error) {
    let (Some(status), Some(response)) = (error.status(), error.response()) else {
        return;
    };
    let mut text = head(status, response.headers());
    text += &escape::lines(&String::from_utf8_lossy(response.body()));
    ui.trace(&text);
}

fn write_body(printer: &Printer, output: Output, body: &[u8]) -> Result<()> {
    if body.is_empty() {
        return Ok(());
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(document) => output.document(&document),
        Err(_) if printer.is_set() => {
            let problem = "the response is not JSON, which `-o`, `--fields` and `--jq` need";
            Err(CliError::new(Kind::Decode, problem))
        }
        Err(_) if printer.screen().is_terminal() => {
            printer.print(escape::lines(&String::from_utf8_lossy(body)).as_bytes())
        }
        Err(_) => printer.print(body),
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
