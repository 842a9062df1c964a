//! Files of rows that were refused, or whose response was lost: each row as it stood in the input
//! with the reason beside it. Once corrected, such a file can be imported.

use super::input::{InputFormat, Row, Rows};

/// Returns the text of such a file: CSV where the input is, else a JSON object on each line.
pub(crate) fn text<'r>(
    input: &[u8],
    layout: &InputFormat,
    rows: impl Iterator<Item = (&'r Row, &'r str)>,
) -> Vec<u8> {
    let mut out = Vec::new();
    let slice = |span: &std::ops::Range<usize>| input.get(span.clone()).unwrap_or_default();
    if let InputFormat::Csv { delimiter, header } = layout {
        add_cell(&mut out, slice(header), *delimiter, "reason");
    }
    for (row, reason) in rows {
        let original = slice(&row.span);
        match layout {
            InputFormat::Csv { delimiter, .. } => add_cell(&mut out, original, *delimiter, reason),
            InputFormat::Json => add_field(&mut out, original, reason),
        }
    }
    out
}

/// Returns the rows with these numbers, each with a reason.
pub(crate) fn select<'r>(
    rows: &'r Rows,
    reasons: &'r [(usize, String)],
) -> impl Iterator<Item = (&'r Row, &'r str)> {
    reasons.iter().filter_map(|(row, reason)| Some((rows.rows.get(*row)?, reason.as_str())))
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
    use super::super::input::read;
    use super::*;

    fn rejected(input: &str, rows: &[usize]) -> String {
        let read = read(input.as_bytes(), "pets").unwrap();
        let reasons: Vec<_> =
            rows.iter().map(|row| (*row, "400: \"no\", it said".to_owned())).collect();
        let out = text(input.as_bytes(), &read.layout, select(&read, &reasons));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_as_they_stood_and_can_be_read_again() {
        let csv = "id,name,categoryId\n1,a,1\n2,\"b\nb\",2\n3,c,3";
        let out = rejected(csv, &[1, 2]);
        let reason = "\"400: \"\"no\"\", it said\"";
        let expected =
            format!("id,name,categoryId,\"reason\"\n2,\"b\nb\",2,{reason}\n3,c,3,{reason}\n");
        assert_eq!(out, expected);
        let pets = |text: &str| {
            read(text.as_bytes(), "pets")
                .unwrap()
                .rows
                .into_iter()
                .map(|row| row.pet)
                .collect::<Vec<_>>()
        };
        assert_eq!(pets(&out), pets(csv)[1..]);
        let json = "[{\"name\":\"a\",\n \"categoryId\":1}, {\"name\":\"b\",\"categoryId\":2}]";
        let out = rejected(json, &[0, 1]);
        assert_eq!(out.lines().count(), 2);
        assert_eq!(pets(&out), pets(json));
    }
}
