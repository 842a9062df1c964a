//! `petstore api`: any request.

use std::path::PathBuf;

use http::HeaderMap;
use petstore_client::{Bytes, Method};
use serde_json::Value;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, OutputFormat};
use crate::report::Sent;
use crate::safe;

/// Sends any request, for what has no command of its own
///
/// It is signed, held back and retried like all others. A JSON answer is laid out; anything else
/// is written as it came.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore api /pets --query limit=5
  petstore api /store/orders -i
  echo '{\"name\":\"Rex\",\"categoryId\":7}' | petstore api /pets --input -")]
pub(crate) struct Api {
    /// The path, relative to the base URL; it may hold a query
    path: String,

    /// The method. Without it: GET, or POST where there is an input
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<Method>,

    /// Adds a query parameter; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    query: Vec<(String, String)>,

    /// Sends a file, or standard input where it is `-`, as a JSON body
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Shows the status and the headers of the answer too
    #[arg(short, long)]
    include: bool,
}

impl Api {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output_or(OutputFormat::Json, None)?;
        let body = match &self.input {
            Some(file) => Some(context.read(file).await?),
            None => None,
        };
        let implied = if body.is_some() { Method::POST } else { Method::GET };
        let client = context.client().await?;
        let mut request = client.request(self.method.unwrap_or(implied), &self.path);
        for (name, value) in &self.query {
            request = request.query(name, value);
        }
        if let Some(body) = body {
            request = request.body("application/json", body);
        }
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) => {
                if self.include {
                    show_refusal(context, &error);
                }
                return Err(error.into());
            }
        };
        let read = |body: &Bytes| serde_json::from_slice(body).unwrap_or_default();
        context.report.called(Sent::new(&self.path), &answer, read);
        if self.include {
            let head = head(answer.status(), answer.headers());
            context.stdout().write_all(head.as_bytes())?;
        }
        write_body(context, output, &answer).await
    }
}

/// Shows what came of a request that was not a success: beside the error, not as a result.
fn show_refusal(context: &Context, error: &petstore_client::Error) {
    if let (Some(status), Some(headers)) = (error.status(), error.headers()) {
        let body = error.body().unwrap_or_default();
        context.report.text(&format!("{}{}\n", head(status, headers), safe::lines(body)));
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

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it must look like NAME=VALUE".to_owned()),
    }
}
