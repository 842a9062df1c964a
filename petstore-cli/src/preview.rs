//! `--dry-run`: a request as it would be sent, and the `curl` that would send it. The key stays a
//! variable, and so does a base URL that is not set.

use std::fmt::Write as _;

use petstore_client::{Method, Url};
use serde::Serialize;

use crate::config::Setting;
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::safe;

/// Stands for a base URL that is not set.
const NOWHERE: &str = "http://base.invalid";
const VARIABLE: &str = "$PETSTORE_BASE_URL";

/// A request that is not sent.
pub(crate) struct Preview {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

#[derive(Serialize)]
struct Shown {
    method: String,
    url: String,
    headers: serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    curl: String,
}

impl Preview {
    /// Writes the request: for people, or as a document where a format was asked for.
    pub(crate) async fn show(self, context: &mut Context, output: Output) -> Result<(), CliError> {
        let base = context.settings.get(Setting::BaseUrl).map(|(url, _)| url.clone());
        let base = base.filter(|_| !context.wants_mock());
        let shown = self.shown(base.as_deref())?;
        if context.look().format.is_some() || context.look().jq.is_some() {
            return output.document(&shown).await;
        }
        let mut text = format!("{} {}\n", shown.method, shown.url);
        for (name, value) in &shown.headers {
            let _ = writeln!(text, "{name}: {}", value.as_str().unwrap_or_default());
        }
        if let Some(body) = &shown.body {
            let _ = write!(text, "\n{body}\n");
        }
        let _ = write!(text, "\n{}\n", shown.curl);
        Ok(context.stdout().write_all(safe::lines(&text).as_bytes())?)
    }

    fn shown(self, base: Option<&str>) -> Result<Shown, CliError> {
        let below = self.below(base.unwrap_or(NOWHERE))?;
        let (url, quoted) = match below.strip_prefix(NOWHERE) {
            Some(rest) => {
                (format!("{VARIABLE}{rest}"), format!("\"{VARIABLE}\"{}", safe::shell(rest)))
            }
            None => (below.clone(), safe::shell(&below)),
        };
        let body = self.body.map(|body| {
            String::from_utf8(body).map_err(|_| CliError::usage("the body is not UTF-8"))
        });
        let body = body.transpose()?;
        let is_kind = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
        let mut headers = vec![("Authorization".to_owned(), "Bearer $PETSTORE_API_KEY".to_owned())];
        if body.is_some() && !self.headers.iter().any(is_kind) {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        headers.extend(self.headers);
        let mut curl = format!("curl -sS -X {} {quoted}", self.method);
        for (at, (name, value)) in headers.iter().enumerate() {
            let header = format!("{name}: {value}");
            // Only the first holds a variable.
            let word = if at == 0 { format!("\"{header}\"") } else { safe::shell(&header) };
            let _ = write!(curl, " \\\n  -H {word}");
        }
        if let Some(body) = &body {
            let _ = write!(curl, " \\\n  --data-raw {}", safe::shell(body));
        }
        let headers = headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        Ok(Shown { method: self.method.to_string(), url, headers, body, curl })
    }

    /// Returns the whole address.
    fn below(&self, base: &str) -> Result<String, CliError> {
        let path = self.path.trim_start_matches('/');
        let dots = |part: &str| part == "." || part == "..";
        let bare = path.split('?').next().unwrap_or_default();
        if self.path.contains("://") || self.path.starts_with("//") || bare.split('/').any(dots) {
            return Err(CliError::usage("the path is not one below the base URL, such as `/pets`"));
        }
        let mut url = Url::parse(&format!("{}/{path}", base.trim_end_matches('/')))
            .map_err(|problem| CliError::usage(format!("the address cannot be used: {problem}")))?;
        for (name, value) in &self.query {
            url.query_pairs_mut().append_pair(name, value);
        }
        Ok(url.to_string())
    }
}
