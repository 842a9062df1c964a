//! `petstore config list`.

use serde::Serialize;

use crate::config::Setting;
use crate::context::Context;
use crate::error::CliError;
use crate::keys;
use crate::settings::Origin;

/// Shows what holds, and where each value comes from
///
/// A flag goes before a variable, a variable before the profile, the profile before the default. The
/// API key itself is not shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore config list
  petstore config list -o json")]
pub(crate) struct List {}

const FIELDS: [&str; 3] = ["setting", "value", "origin"];

#[derive(Serialize)]
struct Row {
    setting: &'static str,
    value: Option<String>,
    origin: Option<String>,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut output = context.output(Some(&FIELDS))?;
        let settings = &context.settings;
        let row = |setting, value: Option<(String, Origin)>| {
            let (value, origin) = value.unzip();
            Row { setting, value, origin: origin.map(|origin| origin.to_string()) }
        };
        let mut rows = vec![row("profile", Some(settings.profile.clone()))];
        rows.extend(Setting::ALL.iter().map(|&each| row(each.name(), settings.shown(each))));
        // A key that cannot be used is a matter for `doctor`; here it is just not there.
        let key = keys::find(settings, &context.env).ok().flatten();
        let hidden = key.as_ref().map(|_| "(hidden)".to_owned());
        let origin = key.map(|key| key.source.to_string());
        rows.push(Row { setting: "api_key", value: hidden, origin });
        output.rows(&rows)?;
        output.done().await
    }
}
