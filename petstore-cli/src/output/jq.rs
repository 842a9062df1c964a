//! `--jq`: an embedded jq. Checks the expression before anything is sent, and runs it over the
//! whole result.

use jaq_core::load::{self, Arena, File, Loader, lex};
use jaq_core::{Compiler, Ctx, Exn, Native, Vars, data};
use jaq_json::Val;
use serde_json::Value;

use crate::error::{CliError, Kind, Result};

type Lut = data::JustLut<Val>;
type Filter = jaq_core::compile::Filter<Native<Lut>>;

/// Definitions that the library lacks, or that work differently in jq.
const PRELUDE: &str = include_str!("prelude.jq");

/// The maximum length of a message. The library's messages include values of any size.
const MAX_MESSAGE: usize = 120;

/// A valid expression.
pub(super) struct Jq {
    code: String,
    variables: Value,
}

impl Jq {
    /// Compiles an expression. `env` and `$ENV` return the variables.
    pub(super) fn parse(code: &str, variables: &Value) -> Result<Self> {
        let code = if code.trim().is_empty() { "." } else { code };
        compile(code)?;
        Ok(Self {
            code: code.to_owned(),
            variables: variables.clone(),
        })
    }

    /// Returns all outputs of the expression for a value.
    pub(super) fn run(&self, input: &Value) -> Result<Vec<Value>> {
        // Compiled here, because a filter is not `Send`.
        let filter = compile(&self.code)?;
        let variables = read(&self.variables)?;
        let context = Ctx::<Lut>::new(&filter.lut, Vars::new([variables]));
        let mut values = Vec::new();
        for result in filter.id.run((context, read(input)?)) {
            match result.map_err(Exn::get_err) {
                Ok(value) => {
                    let Ok(value) = serde_json::from_str(&value.to_string()) else {
                        return Err(failed("the result is not JSON"));
                    };
                    values.push(without_points(value));
                }
                Err(Ok(error)) => {
                    // The text of `error("text")` arrives as a JSON string.
                    let text = error.to_string();
                    let text: String = serde_json::from_str(&text).unwrap_or(text);
                    return Err(failed(&text));
                }
                Err(Err(end)) => match end.get_halt() {
                    Ok(0) => break,
                    _ => return Err(failed("the expression halted with an error")),
                },
            }
        }
        Ok(values)
    }
}

/// Returns the error of an expression that fails while it runs.
fn failed(problem: &str) -> CliError {
    let mut short: String = problem.chars().take(MAX_MESSAGE).collect();
    if short.len() < problem.len() {
        short.push('…');
    }
    CliError::new(Kind::Usage, format!("`--jq`: {short}"))
        .hint("`-o json` without `--jq` shows the data")
}

/// Turns 3.0 into 3, as jq writes it.
fn without_points(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            let whole = text.strip_suffix(".0").unwrap_or_default();
            match whole.parse::<i64>() {
                Ok(whole) => whole.into(),
                Err(_) => Value::Number(number),
            }
        }
        Value::Array(values) => values.into_iter().map(without_points).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, without_points(value)))
            .collect(),
        other => other,
    }
}

fn read(value: &Value) -> Result<Val> {
    jaq_json::read::parse_single(value.to_string().as_bytes())
        .map_err(|problem| CliError::internal(problem.to_string()))
}

fn compile(code: &str) -> Result<Filter> {
    let Some(prelude) = load::parse(PRELUDE, |parser| parser.defs()) else {
        return Err(CliError::internal("prelude.jq is invalid"));
    };
    let defs = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let defs = defs.chain(prelude);
    let arena = Arena::default();
    let file = File { code, path: () };
    let modules = match Loader::new(defs).load(&arena, file) {
        Ok(modules) => modules,
        Err(errors) => {
            let errors = errors.into_iter().map(|(_, error)| error);
            return Err(misread(code, errors));
        }
    };
    let funs = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    // The filter gets no access to standard error, nor to the process's variables, which may
    // contain the key.
    let funs = funs.filter(|(name, ..)| !matches!(*name, "env" | "stderr_empty"));
    let silent = (
        "stderr_empty",
        [].into(),
        Native::<Lut>::new(|_| Box::new(std::iter::empty())),
    );
    let compiler = Compiler::default()
        .with_funs(funs.chain([silent]))
        .with_global_vars(["$ENV"]);
    compiler.compile(modules).map_err(|errors| {
        let mut undefined = errors.into_iter().flat_map(|(_, errors)| errors);
        let (what, kind) = match undefined.next() {
            Some((at, kind)) => (at, kind.as_str()),
            None => ("", "name"),
        };
        misplaced(code, what, &format!("there is no {kind} `{what}`"))
    })
}

/// Returns the error for an expression that is not valid jq.
fn misread<'c>(code: &'c str, errors: impl Iterator<Item = load::Error<&'c str>>) -> CliError {
    let first = errors.filter_map(first_problem).next();
    let (part, problem) = first.unwrap_or((code, "expected an expression".to_owned()));
    misplaced(code, part, &problem).hint("put the expression in single quotes")
}

/// Returns the wrong part of the expression, and what is wrong with it.
fn first_problem(error: load::Error<&str>) -> Option<(&str, String)> {
    match error {
        load::Error::Lex(errors) => match errors.into_iter().next()? {
            (lex::Expect::Delim(open), _) => Some((open, format!("`{open}` is never closed"))),
            (expected, part) => Some((part, format!("expected {}", expected.as_str()))),
        },
        load::Error::Parse(errors) => {
            let (expected, part) = errors.into_iter().next()?;
            Some((part, format!("expected {}", expected.as_str())))
        }
        load::Error::Io(errors) => {
            let (part, _) = errors.into_iter().next()?;
            Some((part, "modules are not supported".to_owned()))
        }
    }
}

/// Returns the error for a part of the expression, with its position.
fn misplaced(code: &str, part: &str, problem: &str) -> CliError {
    let offset = (part.as_ptr() as usize).checked_sub(code.as_ptr() as usize);
    let before = offset.and_then(|offset| code.get(..offset)).unwrap_or("");
    let position = before.chars().count() + 1;
    let problem = format!("`--jq`: {problem}, at character {position}");
    CliError::new(Kind::Usage, problem)
}
