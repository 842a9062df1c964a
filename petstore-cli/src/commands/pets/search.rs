//! `petstore pets list --id`: finds pets by their ids in the list of all pets. The service has no
//! other way after 5 December 2030.

use std::collections::BTreeSet;

use petstore_client::{Pet, PetStatus};

use super::{MAX_PAGE, PETS, select};
use crate::error::{CliError, Kind, Result};
use crate::output::Printer;
use crate::session::{Connector, Purpose};
use crate::status::Progress;
use crate::time::count;
use crate::ui::Ui;

/// Lists pages until all ids are found.
pub(super) async fn run(
    ids: Vec<i64>,
    status: Option<PetStatus>,
    connector: &Connector,
    printer: &Printer,
    ui: &Ui,
) -> Result<()> {
    let mut output = printer.start(PETS)?;
    let mut missing: BTreeSet<i64> = ids.into_iter().collect();
    let client = connector.connect(Purpose::Read).await?;
    let mut pages = select(&client, Some(MAX_PAGE), status).pages();
    let mut has_more = Some(false);
    let mut searched = 0;
    let mut has_offered_pages = false;
    while let Some(page) = pages.try_next().await? {
        has_offered_pages |= has_more == Some(true);
        has_more = page.has_more();
        let found: Vec<&Pet> = page.iter().filter(|pet| missing.remove(&pet.id)).collect();
        output.rows(&found)?;
        searched += page.len();
        if missing.is_empty() {
            break;
        }
        if searched == page.len() && has_more == Some(true) {
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
    if missing.is_empty() {
        return Ok(());
    }
    let pets = named(&missing);
    let searched = count(searched);
    if has_more.is_none() && !has_offered_pages {
        let problem = format!("no {pets} among the {searched} pets that the service lists");
        let hint = "there may be more; the service does not say how to list them";
        return Err(CliError::new(Kind::Partial, problem).hint(hint));
    }
    let problem = format!("no {pets}; searched all {searched} pets");
    Err(CliError::new(Kind::NotFound, problem))
}

/// Returns the missing pets: `pet 7`.
fn named(missing: &BTreeSet<i64>) -> String {
    let ids: Vec<_> = missing.iter().map(i64::to_string).collect();
    match ids.as_slice() {
        [one] => format!("pet {one}"),
        ids => format!("pets {}", ids.join(", ")),
    }
}
