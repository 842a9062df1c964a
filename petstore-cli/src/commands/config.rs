//! `petstore config …`: settings and profiles.

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde::Serialize;
use serde_json::json;

use crate::context::Context;
use crate::error::{CliError, Invalid, Kind};
use crate::output::{ANY, Cell, Head, Shape, Table};
use crate::screen::DIM;
use crate::settings::config_file::{self, ConfigFile, Profile};
use crate::settings::credentials;
use crate::settings::{Text, Values, parse, variable};

fn setting() -> impl clap::builder::TypedValueParser<Value = String> {
    PossibleValuesParser::new(Values::NAMES).map(|name| name)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show the settings in force, and where each value comes from.
    #[command(visible_alias = "ls")]
    List,
    /// Show the value of a setting, wherever it comes from.
    Get {
        /// the setting
        #[arg(value_parser = setting())]
        setting: String,
    },
    /// Set a value in the profile, which is made where there is none.
    Set {
        /// the setting
        #[arg(value_parser = setting())]
        setting: String,
        /// its value
        value: String,
    },
    /// Remove a value from the profile.
    Unset {
        /// the setting
        #[arg(value_parser = setting())]
        setting: String,
    },
    /// Choose the profile that is used where none is named.
    Use {
        /// the profile
        #[arg(value_parser = parse::<Profile>)]
        name: Profile,
    },
    /// List the profiles.
    Profiles,
    /// Show where the configuration file is, or would be.
    Path,
}

const SETTINGS: Shape = Shape { noun: "settings", fields: &["setting", "value", "from"] };
const PROFILES: Shape = Shape { noun: "profiles", fields: &["profile", "baseUrl", "key", "inUse"] };

#[derive(Serialize)]
struct SettingRow {
    setting: &'static str,
    value: Option<String>,
    from: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileRow {
    profile: String,
    base_url: Option<String>,
    /// Whether a key is stored.
    key: bool,
    in_use: bool,
}

impl Config {
    pub(crate) fn needs_settings(&self) -> bool {
        !matches!(self, Self::Path)
    }

    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let profile = context.settings.profile.0.clone();
        match self {
            Self::List => list(context),
            Self::Get { setting } => {
                let output = context.output(ANY)?;
                context.settings.require_profile()?;
                match context.settings.shown(&setting) {
                    Some((value, _)) => output.document(&json!(value)),
                    None => Err(CliError::new(Kind::NotFound, format!("{setting} is not set"))),
                }
            }
            Self::Set { setting, value } => set(context, &profile, &setting, &value),
            Self::Unset { setting } => {
                context.settings.require_profile()?;
                let mut was_there = false;
                ConfigFile::edit(&context.env, |document| {
                    was_there = config_file::unset_value(document, &profile, &setting);
                })?;
                if !was_there {
                    context.ui.note(&format!("profile {profile} has no {setting}"));
                }
                Ok(())
            }
            Self::Use { name: Profile(name) } => {
                let config = &context.settings.config;
                if name != "default" && !config.profiles.contains_key(&name) {
                    return Err(config.no_profile(&name, Kind::NotFound));
                }
                ConfigFile::edit(&context.env, |document| config_file::set_profile(document, &name))
            }
            Self::Profiles => profiles(context),
            Self::Path => {
                let path =
                    ConfigFile::path(&context.env.dirs).ok_or_else(config_file::no_folder)?;
                context.output(ANY)?.document(&json!(path.display().to_string()))
            }
        }
    }
}

fn list(context: &mut Context) -> Result<(), CliError> {
    let settings = &context.settings;
    // A key that can't be used is a matter for `doctor`; here it is missing.
    let credential = credentials::find(settings, &context.env).ok().flatten();
    let mut rows = vec![SettingRow {
        setting: "profile",
        value: Some(settings.profile.0.clone()),
        from: Some(settings.profile.1.to_string()),
    }];
    for &setting in Values::NAMES {
        let (value, source) = settings.shown(setting).unzip();
        rows.push(SettingRow { setting, value, from: source.map(|source| source.to_string()) });
        if setting == "base_url" {
            let from = credential.as_ref().map(|credential| credential.source.shown(&context.env));
            let value = credential.as_ref().map(|_| "set".to_owned());
            rows.push(SettingRow { setting: "api_key", value, from });
        }
    }
    if !context.options.is_table() {
        let mut output = context.output(SETTINGS)?;
        output.rows(&rows)?;
        return context.finish(output);
    }
    let cell = |text: Option<String>| text.map_or_else(Cell::none, Cell::new);
    let row = |row: SettingRow| {
        let from = row.from.unwrap_or_else(|| "default".to_owned());
        vec![Cell::new(row.setting), cell(row.value), Cell::new(from).styled(DIM)]
    };
    let head = vec![Head::new("SETTING"), Head::new("VALUE"), Head::new("FROM").dropped(1)];
    let table = Table { head, rows: rows.into_iter().map(row).collect() };
    let text = table.render(&context.options.screen);
    context.print(&text)
}

fn set(context: &mut Context, profile: &str, setting: &str, text: &str) -> Result<(), CliError> {
    let invalid = |invalid: Invalid| invalid.of(Kind::Usage, format!("{setting} `{text}`"));
    Values::default().set(setting, text).map_err(invalid)?;
    if setting == "base_url" {
        let is_url = petstore_client::Client::builder(text).api_key("x").allow_insecure_http(true);
        if let Err(problem) = is_url.build() {
            let failure = context.facts.client(&problem);
            return Err(CliError::usage(failure.message));
        }
    }
    ConfigFile::edit(&context.env, |document| {
        config_file::set_value(document, profile, setting, text);
    })?;
    let variable = variable(setting);
    if context.env.var(&variable).is_some() {
        let text = format!("{variable} is set, and goes before the profile");
        context.ui.warning(&text, None);
    }
    Ok(())
}

fn profiles(context: &mut Context) -> Result<(), CliError> {
    let settings = &context.settings;
    let row = |(name, values): (&String, &Values)| {
        let key = credentials::path(&context.env.dirs, name).is_ok_and(|path| path.exists());
        ProfileRow {
            profile: name.clone(),
            base_url: values.base_url.as_ref().map(|Text(url)| url.clone()),
            key,
            in_use: *name == settings.profile.0,
        }
    };
    let rows: Vec<_> = settings.config.profiles.iter().map(row).collect();
    if !context.options.is_table() {
        let mut output = context.output(PROFILES)?;
        output.rows(&rows)?;
        return context.finish(output);
    }
    let cells = |row: &ProfileRow| {
        let key = if row.key { Cell::new("kept") } else { Cell::none() };
        let url = row.base_url.clone().map_or_else(Cell::none, Cell::new);
        vec![Cell::new(if row.in_use { "*" } else { " " }), Cell::new(&*row.profile), url, key]
    };
    let head = ["", "PROFILE", "BASE URL", "KEY"].map(Head::new);
    let [mark, profile, url, key] = head;
    let table = Table {
        head: vec![mark, profile, url, key.dropped(1)],
        rows: rows.iter().map(cells).collect(),
    };
    let text = table.render(&context.options.screen);
    context.print(&text)?;
    if rows.is_empty() {
        context
            .ui
            .note_with_hint("no profiles", Some("`petstore auth login --profile NAME` makes one"));
    }
    Ok(())
}
