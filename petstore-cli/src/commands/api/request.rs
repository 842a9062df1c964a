//! The arguments of `petstore api`, and what they come to.

use std::collections::HashSet;
use std::path::PathBuf;

use http::HeaderMap;
use petstore_client::operations::RawRequest;
use petstore_client::{Client, Method};
use serde_json::Value;

use super::{fields, pages};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, OutputFormat, to_text};
use crate::preview::Preview;
use crate::safe;

/// Sends any request, for what has no command of its own
///
/// It is signed, held back and retried like all others. A JSON answer is laid out; anything else
/// is written as it came. Fields make a JSON body, or a query where the method is GET.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore api /pets --query limit=5
  petstore api /pets -X GET -F limit=5 --jq '.[].name'
  petstore api /pets --paginate -o ndjson
  petstore api /pets -f name=Rex -F categoryId=7
  petstore api /store/orders -i
  echo '{\"name\":\"Rex\",\"categoryId\":7}' | petstore api /pets --input -")]
pub(crate) struct Api {
    /// The path, relative to the base URL; it may hold a query
    path: String,

    /// The method. Without it: GET, or POST where there are fields or an input
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<Method>,

    /// Adds a query parameter; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = fields::pair)]
    query: Vec<(String, String)>,

    /// Adds a field whose value is text; may be repeated
    #[arg(short = 'f', long = "raw-field", value_name = "NAME=VALUE", value_parser = fields::pair)]
    raw_fields: Vec<(String, String)>,

    /// Adds a field whose value is what it looks like: a whole number, true, false, null, text, or
    /// with `@FILE` what a file holds (`@-` for standard input); may be repeated
    #[arg(short = 'F', long = "field", value_name = "NAME=VALUE", value_parser = fields::pair)]
    typed_fields: Vec<(String, String)>,

    /// Sends a file, or standard input where it is `-`, as the body: JSON, unless a header says
    /// otherwise
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw_fields", "typed_fields"])]
    input: Option<PathBuf>,

    /// Adds a header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = fields::header)]
    headers: Vec<(String, String)>,

    /// Shows the status and the headers of the answer too
    #[arg(short, long)]
    include: bool,

    /// Follows the links to the next page, and makes one list of all
    #[arg(long, conflicts_with_all = ["include", "input"])]
    paginate: bool,

    /// Shows the request in place of sending it; needs no key and no network
    #[arg(long)]
    dry_run: bool,
}

/// A request, put together.
struct Request {
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Api {
    /// Returns whether it may change something at the service.
    pub(crate) fn changes(&self) -> bool {
        let sends = self.input.is_some() || !self.raw_fields.is_empty();
        match &self.method {
            Some(method) => !method.is_safe(),
            None => sends || !self.typed_fields.is_empty(),
        }
    }

    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output_or(OutputFormat::Json, None)?;
        let (dry_run, paginate, include) = (self.dry_run, self.paginate, self.include);
        let request = self.request(context).await?;
        if dry_run {
            return request.preview().show(context, output).await;
        }
        let client = context.client().await?;
        if paginate {
            return all_pages(output, &client, request).await;
        }
        let answer = match request.of(&client, &request.path).send().await {
            Ok(answer) => answer,
            Err(error) => {
                if include {
                    show_refusal(context, &error);
                }
                return Err(error.into());
            }
        };
        if include {
            let head = head(answer.meta().status(), answer.meta().headers());
            context.stdout().write_all(head.as_bytes())?;
        }
        write_body(context, output, &answer).await
    }

    async fn request(self, context: &mut Context) -> Result<Request, CliError> {
        let mut body = match &self.input {
            Some(file) => Some(context.read(file).await?),
            None => None,
        };
        let fields = fields::collect(context, self.raw_fields, self.typed_fields).await?;
        let sends = body.is_some() || !fields.is_empty();
        let method = self.method.unwrap_or(if sends { Method::POST } else { Method::GET });
        let mut query = self.query;
        if method == Method::GET || method == Method::HEAD {
            query.extend(
                fields.iter().map(|(name, value)| (name.clone(), fields::query_text(value))),
            );
        } else if !fields.is_empty() {
            body = Some(to_text(&Value::Object(fields)).into_bytes());
        }
        Ok(Request { method, path: self.path, query, headers: self.headers, body })
    }
}

impl Request {
    /// Returns the request, with the path of a page.
    fn of(&self, client: &Client, path: &str) -> RawRequest {
        let mut request = client.request(self.method.clone(), path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        // The link to a next page holds its query.
        for (name, value) in self.query.iter().filter(|_| path == self.path) {
            request = request.query(name, value);
        }
        match &self.body {
            Some(body) => request.body("application/json", body.clone()),
            None => request,
        }
    }

    fn preview(self) -> Preview {
        Preview {
            method: self.method,
            path: self.path,
            query: self.query,
            headers: self.headers,
            body: self.body,
        }
    }
}

/// Makes one list of all pages. Formats of records write each as it comes.
async fn all_pages(mut output: Output, client: &Client, request: Request) -> Result<(), CliError> {
    let mut asked = HashSet::new();
    let mut path = request.path.clone();
    loop {
        if !asked.insert(path.clone()) {
            let problem = "the service names a page as next that it has given before";
            return Err(CliError::new(Exit::Service, problem));
        }
        let answer = request.of(client, &path).send().await?;
        let Ok(page) = serde_json::from_slice::<Vec<Value>>(&answer) else {
            let problem = "the answer is no JSON array, which --paginate needs";
            return Err(CliError::new(Exit::Service, problem));
        };
        output.rows(&page)?;
        match pages::next(answer.meta().headers(), client.base_url(), &path)? {
            Some(next) => path = next,
            None => return output.done().await,
        }
    }
}

/// Shows what came of a request that was not a success: beside the error, not as a result.
fn show_refusal(context: &Context, error: &petstore_client::Error) {
    if let (Some(status), Some(headers)) = (error.status(), error.headers()) {
        let body = String::from_utf8_lossy(error.body().map_or(&[], |body| body));
        context.report.text(&format!("{}{}\n", head(status, headers), safe::lines(&body)));
    }
}

async fn write_body(context: &mut Context, output: Output, body: &[u8]) -> Result<(), CliError> {
    match serde_json::from_slice::<Value>(body) {
        Ok(document) => return output.document(&document).await,
        Err(_) if context.look().jq.is_some() => {
            return Err(CliError::new(Exit::Service, "the answer is no JSON, which --jq needs"));
        }
        Err(_) if context.look().is_terminal => {
            let text = String::from_utf8_lossy(body);
            context.stdout().write_all(safe::lines(&text).as_bytes())?;
        }
        Err(_) => context.stdout().write_all(body)?,
    }
    Ok(())
}

fn head(status: http::StatusCode, headers: &HeaderMap) -> String {
    let mut head = format!("HTTP {status}\n");
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        head += &format!("{name}: {}\n", safe::line(&value));
    }
    head + "\n"
}
