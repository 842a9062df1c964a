//! Comma-separated values with a header (RFC 4180), or the same with tabs.

use csv::{ByteRecord, ReaderBuilder, StringRecord};
use petstore_client::NewPet;

use super::{Layout, Table};
use crate::import::check;
use crate::import::row::{Complaint, Lines, Row};

/// Reads rows below a header that begins at a byte.
pub(super) fn rows(text: &str, start: usize, lines: &Lines<'_>) -> Result<Table, Vec<Complaint>> {
    let part = text.get(start..).unwrap_or_default();
    let first = part.lines().next().unwrap_or_default();
    let delimiter = if first.contains('\t') && !first.contains(',') { b'\t' } else { b',' };
    let mut reader =
        ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(part.as_bytes());
    let byte = |at: u64| start + usize::try_from(at).unwrap_or(usize::MAX - start);
    let mut complaints = Vec::new();
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) => return Err(vec![lines.complain(start, error.to_string())]),
    };
    let columns = columns(&header, lines.line(start), &mut complaints);
    let header_ends = byte(reader.position().byte());
    let layout = Layout::Csv { delimiter, header: start..trimmed(text, start, header_ends) };
    let (mut rows, mut record) = (Vec::new(), ByteRecord::new());
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                complaints.push(lines.complain(byte(reader.position().byte()), error.to_string()));
                break;
            }
        }
        let begins = record.position().map_or(0, |position| byte(position.byte()));
        // The reader's own position may stand before the line breaks that it skipped.
        let begins = begins + blank(text.get(begins..).unwrap_or_default());
        let ends = trimmed(text, begins, byte(reader.position().byte()));
        let line = lines.line(begins);
        let before = complaints.len();
        let pet = if record.len() == header.len() {
            pet(&record, &columns, line, &mut complaints)
        } else {
            let fields = if record.len() == 1 { "field" } else { "fields" };
            let problem = format!(
                "the row has {} {fields}, and the header has {}",
                record.len(),
                header.len()
            );
            complaints.push(Complaint { line, column: record.len().min(header.len()), problem });
            None
        };
        if complaints.len() == before
            && let Some(pet) = pet
        {
            rows.push(Row { line, span: begins..ends, pet });
        }
    }
    if complaints.is_empty() { Ok(Table { layout, rows }) } else { Err(complaints) }
}

/// Which column holds what.
#[derive(Debug, Default)]
struct Columns {
    name: Option<usize>,
    category: Option<usize>,
    status: Option<usize>,
}

fn columns(header: &StringRecord, line: usize, complaints: &mut Vec<Complaint>) -> Columns {
    let mut columns = Columns::default();
    // An input of nothing at all needs no header.
    if header.is_empty() || header.iter().eq([""]) {
        return columns;
    }
    for (place, field) in header.iter().enumerate() {
        let slot = match field {
            "name" => &mut columns.name,
            "categoryId" => &mut columns.category,
            "status" => &mut columns.status,
            left_out if check::LEFT_OUT.contains(&left_out) => continue,
            unknown => {
                let problem = check::unknown(unknown);
                complaints.push(Complaint { line, column: place + 1, problem });
                continue;
            }
        };
        if slot.replace(place).is_some() {
            let problem = check::repeated(field);
            complaints.push(Complaint { line, column: place + 1, problem });
        }
    }
    for (column, name) in [(columns.name, "name"), (columns.category, "categoryId")] {
        if column.is_none() {
            complaints.push(Complaint { line, column: 1, problem: check::missing(name) });
        }
    }
    columns
}

fn pet(
    record: &ByteRecord,
    columns: &Columns,
    line: usize,
    complaints: &mut Vec<Complaint>,
) -> Option<NewPet> {
    // All of the input is UTF-8, and a quote or a comma splits no character.
    let cell = |place: usize| std::str::from_utf8(record.get(place)?).ok();
    let category = columns.category?;
    let id = check::category(cell(category)?);
    let id = id.map_err(|problem| (category, problem));
    let status = columns.status.and_then(|place| Some((place, cell(place)?)));
    let status = match status.filter(|(_, text)| !text.is_empty()) {
        Some((place, text)) => check::status(text).map(Some).map_err(|problem| (place, problem)),
        None => Ok(None),
    };
    let mut good = |result: Result<_, (usize, String)>| {
        result.map_err(|(place, problem)| {
            complaints.push(Complaint { line, column: place + 1, problem });
        })
    };
    let (id, status) = (good(id.map(|id| (id, None))), good(status.map(|status| (0, status))));
    let pet = NewPet::new(cell(columns.name?)?, id.ok()?.0);
    Some(match status.ok()?.1 {
        Some(status) => pet.with_status(status),
        None => pet,
    })
}

fn blank(text: &str) -> usize {
    text.len() - text.trim_start_matches(['\r', '\n']).len()
}

/// Returns where a record ends, its line break left out.
fn trimmed(text: &str, begins: usize, ends: usize) -> usize {
    let record = text.get(begins..ends).unwrap_or_default();
    begins + record.trim_end_matches(['\r', '\n']).len()
}
