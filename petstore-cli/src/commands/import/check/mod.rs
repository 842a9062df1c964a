//! `--unknown check`: lists the pets to find out which unknown rows were created.

mod cluster;
mod matching;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use petstore_client::{Client, Error, ErrorKind};
use tokio::time::{Instant, sleep};

use self::matching::{Matching, Verdict};
use super::input::Input;
use super::journal::{Checked, Journal, Record, RowState, State};
use crate::context::Context;
use crate::error::Result;
use crate::status::{Activity, Progress};
use crate::time::plural;

/// The size of a page.
const PAGE: u32 = 100;

/// Finds out which unknown rows were created, and records that. Rows that were certainly not
/// created may then be sent. Returns why rows stay unknown, if the list proves nothing.
pub(super) async fn check(
    context: &Context,
    client: &Client,
    input: &Input,
    journal: &mut Journal,
) -> Result<Option<String>> {
    let unknown = journal.state().unknown().len();
    let rows = plural(unknown, "unknown row", "unknown rows");
    let estimate = estimate(journal.state());
    let ui = context.ui();
    ui.note_now(&format!("checking {rows}: listing all pets{estimate}"));
    await_stragglers(context, journal, unknown).await;
    let mut matching = Matching::new(input.rows(), journal.state());
    let gap = list(context, client, &mut matching).await;
    ui.set_progress(None);
    let verdict = matching.finish(gap?);
    ui.note_now(&summary(&verdict, unknown));
    let Verdict { checked, doubt, .. } = verdict;
    journal.write(vec![Record::Checked(checked)])?;
    Ok(doubt)
}

/// Records uncertain rows as created: each gets the first of its possible pets that no other row
/// has.
pub(super) fn accept(context: &Context, journal: &mut Journal) -> Result<()> {
    let state = journal.state();
    let mut taken = std::collections::HashSet::new();
    let mut accepted = Vec::new();
    for (row, state) in state.rows().iter().enumerate() {
        if let RowState::Uncertain(pets) = state
            && let Some(pet) = pets.iter().find(|pet| !taken.contains(*pet))
        {
            taken.insert(*pet);
            accepted.push((row, *pet));
        }
    }
    if accepted.is_empty() {
        context.ui().note("no row is uncertain");
        return Ok(());
    }
    let rows = plural(accepted.len(), "uncertain row", "uncertain rows");
    context.ui().note_now(&format!("taking {rows} as created"));
    journal.write(vec![Record::Accepted(accepted)])
}

/// Describes how many requests the list takes, if the ids suggest a number.
fn estimate(state: &State) -> String {
    let created = state.rows().iter().filter_map(|row| match row {
        RowState::Created(id) => Some(*id),
        _ => None,
    });
    let Some(highest) = created.max() else {
        return String::new();
    };
    let pages = usize::try_from(highest / i64::from(PAGE)).unwrap_or(0) + 1;
    format!(", about {}", plural(pages, "request", "requests"))
}

/// Waits until no request of an earlier run can still arrive at the service.
async fn await_stragglers(context: &Context, journal: &Journal, unknown: usize) {
    let rest = journal.until_all_arrived();
    if rest.is_zero() {
        return;
    }
    let activity = Activity::late_rows(unknown, Instant::now() + rest);
    context.ui().set_activity(Some(activity));
    sleep(rest).await;
    context.ui().set_activity(None);
}

/// Lists all pets. Returns why the list is incomplete, if it is. Fails if it is worth trying again
/// in a later run.
async fn list(
    context: &Context,
    client: &Client,
    matching: &mut Matching<'_>,
) -> Result<Option<String>> {
    let (listed, size) = match list_pages(context, client, matching, PAGE).await? {
        End::Certain => return Ok(None),
        End::Gap(why) => return Ok(Some(why)),
        End::FullPage { listed, size } => (listed, size),
    };
    // A service without links ends every list with a full page, and so does one that stops after
    // some pages. A whole list ends with a shorter page at one of two sizes.
    match list_pages(context, client, matching, size - 1).await? {
        End::Certain => Ok(None),
        End::Gap(why) => Ok(Some(why)),
        End::FullPage { .. } => Ok(Some(format!(
            "the list ends with a full page of {listed} pets, without a link to the next"
        ))),
    }
}

/// How a list ended.
enum End {
    /// With a page that has room for more.
    Certain,
    /// With a full page. There may be more pets.
    FullPage {
        listed: usize,
        size: u32,
    },
    Gap(String),
}

/// Lists all pets in pages of this size.
async fn list_pages(
    context: &Context,
    client: &Client,
    matching: &mut Matching<'_>,
    size: u32,
) -> Result<End> {
    let mut pages = client.pets().list().limit(size).pages();
    let mut listed = 0;
    let mut page_count = 0;
    let mut is_full = false;
    let mut full = size as usize;
    loop {
        let page = match pages.try_next().await {
            Ok(Some(page)) => page,
            Ok(None) => break,
            Err(error) => return gap(context, error, listed).map(End::Gap),
        };
        listed += page.len();
        page_count += 1;
        if page.has_more() == Some(true) {
            if page_count == 1 {
                full = page.len();
            }
            // Only the last page may be shorter. Another one may lack the pet of a row.
            if page.len() != full {
                let pets = plural(page.len(), "pet", "pets");
                return Ok(End::Gap(format!(
                    "page {page_count} of the list has {pets}, but earlier pages have {full}"
                )));
            }
        }
        is_full = page.len() >= full;
        context.ui().set_progress(Some(Progress::Pets {
            verb: "listing",
            count: listed,
        }));
        page.iter().for_each(|pet| matching.add(pet));
    }
    match u32::try_from(full) {
        Ok(size) if is_full && size > 1 => Ok(End::FullPage { listed, size }),
        _ => Ok(End::Certain),
    }
}

/// Explains why an error ended the list. Fails if it is worth trying again later.
fn gap(context: &Context, error: Error, listed: usize) -> Result<String> {
    if error.is_rate_limited() || error.kind() == ErrorKind::Unauthorized {
        return Err(error.into());
    }
    let problem = context.connector().explain_client(&error).message;
    Ok(format!(
        "the list broke off after {}: {problem}",
        plural(listed, "pet", "pets")
    ))
}

/// Describes what was found.
fn summary(verdict: &Verdict, unknown: usize) -> String {
    let Verdict {
        checked,
        undecided,
        doubt: _,
    } = verdict;
    let Checked {
        found,
        not_found,
        uncertain,
    } = checked;
    let all = plural(unknown, "unknown row", "unknown rows");
    match (found.len(), not_found.len(), uncertain.len()) {
        (found, 0, 0) if found == unknown => match unknown {
            1 => "the unknown row was created".to_owned(),
            _ => format!("all {all} were created"),
        },
        (0, not_found, 0) if not_found == unknown => match unknown {
            1 => "the unknown row was not created; sending it".to_owned(),
            _ => format!("none of the {all} was created; sending them"),
        },
        (0, 0, 0) => match unknown {
            1 => "the unknown row stays unknown".to_owned(),
            _ => format!("all {all} stay unknown"),
        },
        (0, 0, uncertain) if uncertain == unknown => match unknown {
            1 => "the unknown row is uncertain".to_owned(),
            _ => format!("all {all} are uncertain"),
        },
        (created, missing, uncertain) => {
            let mut parts = Vec::new();
            if created > 0 {
                parts.push(format!("{} created", was(created)));
            }
            if missing > 0 {
                parts.push(format!("{} not, and will be sent", was(missing)));
            }
            if uncertain > 0 {
                let are = plural(uncertain, "is", "are");
                parts.push(format!("{are} uncertain"));
            }
            if *undecided > 0 {
                let stay = plural(*undecided, "stays", "stay");
                parts.push(format!("{stay} unknown"));
            }
            format!("of {all}, {}", parts.join("; "))
        }
    }
}

fn was(rows: usize) -> String {
    plural(rows, "was", "were")
}
