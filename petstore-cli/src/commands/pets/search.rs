//! `petstore pets list --id`: finds pets by their ids in the list of all pets. The service has no
//! other way after 5 December 2030.

use std::collections::BTreeSet;

use petstore_client::{Pet, PetStatus};

use super::{MAX_PAGE, PETS, PetPages, select};
use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::session::Purpose;
use crate::status::Progress;
use crate::time::plural;

/// Lists pages until all ids are found.
pub(super) async fn run(context: &Context, ids: Vec<i64>, status: Option<PetStatus>) -> Result<()> {
    let ui = context.ui();
    let mut output = context.printer().start(PETS)?;
    let mut missing: BTreeSet<i64> = ids.into_iter().collect();
    let client = context.connect(Purpose::Read).await?;
    // The pets of all statuses are listed, to tell a missing pet from one with another status.
    let mut pages = PetPages::new(select(&client, Some(MAX_PAGE), None), None);
    let mut others = Vec::new();
    let mut searched = 0;
    while let Some(page) = pages.next().await? {
        let found = page.iter().filter(|pet| missing.remove(&pet.id));
        let is_wanted = |pet: &&Pet| status.is_none() || pet.status == status;
        let (found, other): (Vec<&Pet>, Vec<&Pet>) = found.partition(is_wanted);
        output.rows(&found)?;
        others.extend(other.into_iter().map(another_status));
        searched += page.len();
        if missing.is_empty() {
            break;
        }
        if searched == page.len() && pages.has_more() == Some(true) {
            let pets = named(&missing);
            ui.note_now(&format!("searching all pages of pets for {pets}"));
        }
        ui.set_progress(Some(Progress::Pets {
            verb: "listing",
            count: searched,
        }));
    }
    ui.set_progress(None);
    ui.late_field(output.finish()?);
    if missing.is_empty() && others.is_empty() {
        return Ok(());
    }
    if missing.is_empty() {
        return Err(CliError::new(Kind::NotFound, others.join("; ")));
    }
    let pets = named(&missing);
    let searched = plural(searched, "pet", "pets");
    if pages.has_more().is_none() {
        let problem = format!("no {pets} among the {searched} that the service lists");
        let hint = "there may be more; the service does not say how to list them";
        return Err(CliError::new(Kind::Partial, problem).hint(hint));
    }
    let problem = format!("no {pets}; searched all pages: {searched}");
    Err(CliError::new(Kind::NotFound, problem).list(others))
}

/// Says which status a pet has: `pet 7 is sold`.
fn another_status(pet: &Pet) -> String {
    match &pet.status {
        Some(status) => format!("pet {} is {status}", pet.id),
        None => format!("pet {} has no status", pet.id),
    }
}

/// Returns the missing pets: `pet 7`.
fn named(missing: &BTreeSet<i64>) -> String {
    let ids: Vec<_> = missing.iter().map(i64::to_string).collect();
    match ids.as_slice() {
        [one] => format!("pet {one}"),
        ids => format!("pets {}", ids.join(", ")),
    }
}
