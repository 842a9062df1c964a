//! `--jq`: an embedded jq. The expression is checked before anything is sent, and run over the
//! whole result.

use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Exn, Native, Vars, data};
use jaq_json::Val;
use serde_json::Value;

use super::json::to_text;
use crate::error::CliError;
use crate::exit::Exit;

type Lut = data::JustLut<Val>;
type Filter = jaq_core::compile::Filter<Native<Lut>>;

/// An expression that was understood.
pub(super) struct Jq(String);

impl Jq {
    pub(super) fn parse(code: &str) -> Result<Self, CliError> {
        compile(code)?;
        Ok(Self(code.to_owned()))
    }

    /// Returns all that the expression makes of a value.
    ///
    /// On a thread of its own: an expression may run without end, and Ctrl-C must not wait for it.
    pub(super) async fn run(self, input: Value) -> Result<Vec<Value>, CliError> {
        // Compiled anew there, since a filter must stay on its thread.
        let work = tokio::task::spawn_blocking(move || values(&compile(&self.0)?, &input));
        work.await.map_err(|problem| CliError::new(Exit::Internal, problem))?
    }
}

fn values(filter: &Filter, input: &Value) -> Result<Vec<Value>, CliError> {
    let failed = |problem: String| CliError::usage(format!("--jq: {problem}"));
    let input = jaq_json::read::parse_single(to_text(input).as_bytes());
    let input = input.map_err(|problem| CliError::new(Exit::Internal, problem.to_string()))?;
    let context = Ctx::<Lut>::new(&filter.lut, Vars::new([]));
    let mut values = Vec::new();
    for result in filter.id.run((context, input)) {
        match result.map_err(Exn::get_err) {
            Ok(value) => {
                let value = serde_json::from_str(&value.to_string());
                let odd = |problem| failed(format!("it returns what is no JSON: {problem}"));
                values.push(value.map_err(odd)?);
            }
            Err(Ok(error)) => return Err(failed(error.to_string())),
            Err(Err(end)) => match end.get_halt() {
                Ok(0) => break,
                _ => return Err(failed("the expression halted with an error".to_owned())),
            },
        }
    }
    Ok(values)
}

fn compile(code: &str) -> Result<Filter, CliError> {
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let arena = Arena::default();
    let modules = Loader::new(defs).load(&arena, File { code, path: () });
    let modules = modules.map_err(|errors| misread(code, errors.into_iter().map(|(_, e)| e)))?;
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    // The variables hold the key, and standard error is not jq's to write to.
    let funs = funs.filter(|(name, ..)| !matches!(*name, "env" | "stderr_empty"));
    let silent = ("stderr_empty", [].into(), Native::<Lut>::new(|_| Box::new(std::iter::empty())));
    Compiler::default().with_funs(funs.chain([silent])).compile(modules).map_err(|errors| {
        let mut undefined = errors.into_iter().flat_map(|(_, errors)| errors);
        let (what, kind) = undefined.next().map_or(("", "name"), |(at, kind)| (at, kind.as_str()));
        misplaced(code, what, &format!("there is no {kind} `{what}`"))
    })
}

fn misread<'c>(code: &'c str, errors: impl Iterator<Item = load::Error<&'c str>>) -> CliError {
    let mut found = errors.filter_map(|error| match error {
        load::Error::Lex(errors) => errors.first().map(|(expected, at)| {
            let expected = match expected {
                load::lex::Expect::Delim(open) => format!("what closes `{open}`"),
                other => other.as_str().to_owned(),
            };
            // What is missing at the end is missed where it was opened.
            (*at, expected)
        }),
        load::Error::Parse(errors) => {
            errors.first().map(|(expected, at)| (*at, expected.as_str().to_owned()))
        }
        load::Error::Io(errors) => {
            errors.first().map(|(at, _)| (*at, "no module (there are none here)".to_owned()))
        }
    });
    let (at, expected) = found.next().unwrap_or((code, "an expression".to_owned()));
    let found = at.chars().next().map_or("the end".to_owned(), |c| format!("`{c}`"));
    misplaced(code, at, &format!("expected {expected}, found {found}"))
}

/// Says what is wrong at a part of the expression, and where that is.
fn misplaced(code: &str, part: &str, problem: &str) -> CliError {
    let offset = (part.as_ptr() as usize).checked_sub(code.as_ptr() as usize);
    let before = offset.and_then(|offset| code.get(..offset)).unwrap_or("");
    let position = before.chars().count() + 1;
    CliError::usage(format!("--jq: at character {position} of `{code}`: {problem}"))
}
