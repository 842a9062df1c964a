//! The rows that were refused, each as it stood in the input with the reason beside it: mended, the
//! file can be imported itself. Pure.

use super::journal::{Fate, Ledger};
use super::read::{Layout, Table};

/// Returns the text of a file of rejects: a JSON object on each line, or CSV where the input is.
pub(crate) fn rejects(input: &[u8], table: &Table, ledger: &Ledger) -> Vec<u8> {
    let mut out = Vec::new();
    let slice = |span: &std::ops::Range<usize>| input.get(span.clone()).unwrap_or_default();
    if let Layout::Csv { delimiter, header } = &table.layout {
        let header = slice(header);
        add_cell(&mut out, header, *delimiter, "reason");
    }
    for (row, fate) in table.rows.iter().zip(&ledger.fates) {
        let Fate::Rejected(reason) = fate else { continue };
        let original = slice(&row.span);
        match &table.layout {
            Layout::Csv { delimiter, .. } => add_cell(&mut out, original, *delimiter, reason),
            Layout::Json | Layout::Ndjson => add_field(&mut out, original, reason),
        }
    }
    out
}

fn add_cell(out: &mut Vec<u8>, row: &[u8], delimiter: u8, text: &str) {
    out.extend_from_slice(row);
    out.push(delimiter);
    out.extend(format!("\"{}\"\n", text.replace('"', "\"\"")).bytes());
}

/// An object of the input has a name at least, so it is not empty.
fn add_field(out: &mut Vec<u8>, object: &[u8], reason: &str) {
    let object = object.trim_ascii_end();
    let open = object.strip_suffix(b"}").unwrap_or(object).trim_ascii_end();
    // On one line, so that the file is NDJSON: a line break in JSON is space.
    out.extend(open.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    let reason = serde_json::Value::from(reason);
    out.extend(format!(",\"reason\":{reason}}}\n").bytes());
}

#[cfg(test)]
mod tests {
    use super::super::journal::{Event, Header};
    use super::super::read::read;
    use super::*;

    fn rejected(input: &str, rows: &[usize]) -> String {
        let table = read(input.as_bytes()).unwrap();
        let header = Header {
            petstore_import: 1,
            sha256: String::new(),
            rows: table.rows.len(),
            base_url: String::new(),
        };
        let mut ledger = Ledger::new(header);
        for row in rows {
            ledger.apply(*row, Event::Rejected("400: \"no\", it said".into())).unwrap();
        }
        String::from_utf8(rejects(input.as_bytes(), &table, &ledger)).unwrap()
    }

    #[test]
    fn are_as_they_stood_and_can_be_read_again() {
        let csv = "id,name,categoryId\n1,a,1\n2,\"b\nb\",2\n3,c,3";
        let out = rejected(csv, &[1, 2]);
        let reason = "\"400: \"\"no\"\", it said\"";
        assert_eq!(
            out,
            format!("id,name,categoryId,\"reason\"\n2,\"b\nb\",2,{reason}\n3,c,3,{reason}\n")
        );
        assert_eq!(read(out.as_bytes()).unwrap().rows.len(), 2);

        let json = "[{\"name\":\"a\",\n \"categoryId\":1 },{\"name\":\"b\",\"categoryId\":2}]";
        let out = rejected(json, &[0]);
        assert_eq!(
            out,
            "{\"name\":\"a\",  \"categoryId\":1,\"reason\":\"400: \\\"no\\\", it said\"}\n"
        );
        assert_eq!(read(out.as_bytes()).unwrap().rows.len(), 1);
    }
}
