//! `petstore config …`: settings and profiles.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use petstore_client::Client;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{CliError, Invalid, Kind};
use crate::output::{ANY, Shape};
use crate::settings::config_file::{self, ConfigFile, Profile, profile_table};
use crate::settings::precedence::Source;
use crate::settings::{Values, credentials, parse, variable};

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show the settings in force, with the source of each value.
    #[command(visible_alias = "ls")]
    List,
    /// Show the value of a setting.
    Get {
        /// the setting
        #[arg(value_parser = PossibleValuesParser::new(Values::NAMES))]
        setting: String,
    },
    /// Set a value in the profile, which is created if missing.
    Set {
        /// the setting
        #[arg(value_parser = PossibleValuesParser::new(Values::NAMES))]
        setting: String,
        /// its value
        value: String,
    },
    /// Remove a value from the profile.
    Unset {
        /// the setting
        #[arg(value_parser = PossibleValuesParser::new(Values::NAMES))]
        setting: String,
    },
    /// Choose the default profile.
    Use {
        /// the profile
        #[arg(value_parser = parse::<Profile>)]
        name: Profile,
    },
    /// List the profiles.
    Profiles,
    /// Show the path of the configuration file.
    Path,
}

const SETTINGS: Shape = Shape {
    noun: "settings",
    fields: &["setting", "value", "from"],
    dropped: &["from"],
};
const PROFILES: Shape = Shape {
    noun: "profiles",
    fields: &["profile", "baseUrl", "key", "inUse"],
    dropped: &["inUse", "key"],
};
/// The form for people: a star marks the profile in use.
const MARKED_PROFILES: Shape = Shape {
    noun: "profiles",
    fields: &["", "profile", "baseUrl", "key"],
    dropped: &["key"],
};

impl Config {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let settings = &context.settings;
        match self {
            Self::Set { .. } => context.refuse_mock("config set")?,
            Self::Unset { .. } => context.refuse_mock("config unset")?,
            Self::Use { .. } => context.refuse_mock("config use")?,
            _ => {}
        }
        match self {
            Self::List => list(context),
            Self::Get { setting } => {
                settings.require_profile()?;
                match settings.shown(&setting) {
                    Some((value, _)) => context.output(ANY)?.document(&value),
                    None => Err(CliError::new(
                        Kind::NotFound,
                        format!("{setting} is not set"),
                    )),
                }
            }
            Self::Set { setting, value } => set(context, &setting, &value).await,
            Self::Unset { setting } => {
                settings.require_profile()?;
                let profile = &settings.profile;
                let mut removed = None;
                ConfigFile::edit(&context.env, |document| {
                    removed = profile_table(document, profile).and_then(|t| t.remove(&setting));
                })
                .await?;
                if removed.is_none() {
                    context
                        .ui
                        .note(&format!("profile {profile} has no {setting}"));
                }
                Ok(())
            }
            Self::Use {
                name: Profile(name),
            } => {
                if name != "default" && !settings.config.profiles.contains_key(&name) {
                    return Err(settings.no_profile(&name));
                }
                ConfigFile::edit(&context.env, |document| {
                    config_file::put(document.as_table_mut(), "profile", &name);
                })
                .await
            }
            Self::Profiles => profiles(context),
            Self::Path => {
                let path = ConfigFile::path(&context.env.dirs);
                let path = path.ok_or_else(config_file::no_folder)?;
                context.output(ANY)?.document(&path.display().to_string())
            }
        }
    }
}

fn list(context: &Context) -> Result<(), CliError> {
    let settings = &context.settings;
    let row = |setting: &str, value: Option<String>, from: String| json!({ "setting": setting, "value": value, "from": from });
    let profile_source = settings.source_name("profile", settings.profile_source);
    let mut rows = vec![row(
        "profile",
        Some(settings.profile.clone()),
        profile_source,
    )];
    for setting in Values::NAMES {
        let (value, source) = settings.shown(setting).unzip();
        let source = source.unwrap_or(Source::Default);
        rows.push(row(setting, value, settings.source_name(setting, source)));
    }
    // `doctor` reports an invalid key; here it counts as missing.
    let key = credentials::find(settings, &context.env).ok().flatten();
    let value = key.as_ref().map(|_| "set".to_owned());
    let from = key.map_or_else(|| "default".to_owned(), |key| key.source);
    rows.insert(2, row("api_key", value, from));
    let mut output = context.output(SETTINGS)?;
    output.rows(&rows)?;
    context.finish(output)
}

async fn set(context: &Context, setting: &str, text: &str) -> Result<(), CliError> {
    let invalid = |invalid: Invalid| invalid.of(Kind::Usage, format!("{setting} `{text}`"));
    Values::default().set(setting, text).map_err(invalid)?;
    if setting == "base_url" {
        let builder = Client::builder(text).api_key("x").allow_insecure_http(true);
        if let Err(problem) = builder.build() {
            return Err(CliError::usage(context.facts.client(&problem).message));
        }
    }
    ConfigFile::edit(&context.env, |document| {
        if let Some(table) = profile_table(document, &context.settings.profile) {
            config_file::put(table, setting, text);
        }
    })
    .await?;
    let variable = variable(setting);
    if context.env.var(&variable).is_some() {
        context.ui.warning(
            &format!("{variable} is set and overrides the profile"),
            None,
        );
    }
    Ok(())
}

fn profiles(context: &Context) -> Result<(), CliError> {
    let settings = &context.settings;
    let is_table = context.options.is_table();
    let row = |(name, values): (&String, &Values)| -> Value {
        let has_key = credentials::path(&context.env.dirs, name).is_ok_and(|path| path.exists());
        let (in_use, base_url) = (*name == settings.profile, &values.base_url);
        match is_table {
            true => json!({
                "": if in_use { "*" } else { " " },
                "profile": name,
                "baseUrl": base_url,
                "key": has_key.then_some("kept"),
            }),
            false => {
                json!({ "profile": name, "baseUrl": base_url, "key": has_key, "inUse": in_use })
            }
        }
    };
    let rows: Vec<_> = settings.config.profiles.iter().map(row).collect();
    let mut output = context.output(if is_table { MARKED_PROFILES } else { PROFILES })?;
    output.rows(&rows)?;
    context.finish(output)?;
    if rows.is_empty() {
        let hint = "`petstore auth login --profile NAME` creates one";
        context.ui.note_with_hint("no profiles", Some(hint));
    }
    Ok(())
}
