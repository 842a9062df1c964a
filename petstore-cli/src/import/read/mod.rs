//! Reads an input as rows. Its format is told by what is in it, not by its name, and everything that
//! is wrong with it is told at once.

mod csv;
mod json;

use std::ops::Range;

use super::row::{Complaint, Lines, Row};

/// How the rows are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A JSON object on each line.
    Ndjson,
    /// One JSON array, or one object.
    Json,
    /// Values between commas, or tabs, below a header.
    Csv {
        delimiter: u8,
        /// The bytes of the header.
        header: Range<usize>,
    },
}

/// An input that has nothing wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) layout: Layout,
    pub(crate) rows: Vec<Row>,
}

/// Reads an input.
///
/// # Errors
///
/// All that is wrong with it, in the order of its lines.
pub(crate) fn read(input: &[u8]) -> Result<Table, Vec<Complaint>> {
    let text = match std::str::from_utf8(input) {
        Ok(text) => text,
        Err(error) => {
            let good = input.get(..error.valid_up_to()).unwrap_or_default();
            let good = String::from_utf8_lossy(good);
            return Err(vec![Lines::of(&good).complain(good.len(), "this is no UTF-8")]);
        }
    };
    let lines = Lines::of(text);
    let start = text.len() - text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).len();
    match text.as_bytes().get(start) {
        Some(b'[') => json::array(text, start, &lines),
        Some(b'{') => json::objects(text, start, &lines),
        _ => csv::rows(text, start, &lines),
    }
}

#[cfg(test)]
mod tests {
    use petstore_client::{NewPet, PetStatus};

    use super::*;

    fn pets(input: &str) -> Vec<NewPet> {
        read(input.as_bytes()).unwrap().rows.into_iter().map(|row| row.pet).collect()
    }

    fn complaints(input: &str) -> Vec<String> {
        read(input.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect()
    }

    fn three() -> Vec<NewPet> {
        vec![
            NewPet::new("Rex", 7).with_status(PetStatus::Sold),
            NewPet::new("", -1),
            NewPet::new("a,\"b\"\nc", i64::MAX),
        ]
    }

    #[test]
    fn reads_the_same_pets_from_every_format() {
        let ndjson = concat!(
            "\u{feff}{\"id\":1,\"name\":\"Rex\",\"categoryId\":7,\"status\":\"sold\"}\r\n\n",
            "{\"name\":\"\",\"categoryId\":-1,\"status\":null}\n",
            "{\"categoryId\":9223372036854775807,\"name\":\"a,\\\"b\\\"\\nc\"}",
        );
        assert_eq!(pets(ndjson), three());
        let json = format!(
            "[{}]",
            ndjson
                .trim_start_matches('\u{feff}')
                .trim()
                .replace("}\r\n\n", "},\n")
                .replace("}\n", "},\n")
        );
        assert_eq!(pets(&json), three());
        let csv = "id,name,categoryId,status\n1,Rex,7,sold\n2,,-1,\n,\"a,\"\"b\"\"\nc\",9223372036854775807,\n";
        assert_eq!(pets(csv), three());
        assert_eq!(pets("name\tcategoryId\nRex\t7\n"), [NewPet::new("Rex", 7)]);
        assert_eq!(
            pets("{\n \"name\": \"Rex\",\n \"categoryId\": 7\n}\n"),
            [NewPet::new("Rex", 7)]
        );
        for empty in ["", "\n", "[]", " [ ]\n", "name,categoryId\n"] {
            assert_eq!(pets(empty), [], "{empty:?}");
        }
    }

    #[test]
    fn keeps_the_line_and_the_bytes_of_each_row() {
        let csv = "name,categoryId\n\"R\nex\",7\nB,8\n";
        let table = read(csv.as_bytes()).unwrap();
        let rows: Vec<_> =
            table.rows.iter().map(|row| (row.line, &csv[row.span.clone()])).collect();
        assert_eq!(rows, [(2, "\"R\nex\",7"), (4, "B,8")]);
        let ndjson = "\n{\"name\":\"a\",\"categoryId\":1} \n";
        let table = read(ndjson.as_bytes()).unwrap();
        assert_eq!(table.rows[0].line, 2);
        assert_eq!(&ndjson[table.rows[0].span.clone()], "{\"name\":\"a\",\"categoryId\":1}");
    }

    #[test]
    fn complains_of_everything_at_once() {
        let ndjson = "{\"name\":1,\"categoryId\":7.5}\n{\"name\":\"a\"\n{\"nmae\":\"a\",\"categoryId\":1,\"status\":\"slod\"}\n[]\n";
        assert_eq!(
            complaints(ndjson),
            [
                "line 1, column 9: `name` must be a text, and is a number",
                "line 1, column 24: `categoryId` must be a whole number of 64 bits, and is `7.5`",
                "line 2, column 11: this is no JSON: EOF while parsing an object",
                "line 3, column 9: a pet has no field `nmae` (did you mean `name`?)",
                "line 3, column 37: `status` must be available, pending or sold, and is `slod` (did you mean `sold`?)",
                "line 3, column 1: `name` is missing",
                "line 4, column 1: a pet must be an object, and this is a list",
            ]
        );
        assert_eq!(
            complaints("name,categoryId,status\na,x,sold\nb\nc,1,gone\n"),
            [
                "line 2, column 2: `categoryId` must be a whole number of 64 bits, and is `x`",
                "line 3, column 1: the row has 1 field, and the header has 3",
                "line 4, column 3: `status` must be available, pending or sold, and is `gone`",
            ]
        );
        assert_eq!(
            complaints("name,category\n"),
            [
                "line 1, column 2: a pet has no field `category` (did you mean `categoryId`?)",
                "line 1, column 1: `categoryId` is missing",
            ]
        );
        assert_eq!(complaints("hello\n")[0], "line 1, column 1: a pet has no field `hello`");
        assert_eq!(
            complaints("[{\"name\":\"a\",\"categoryId\":1},\n 7, {]")[0],
            "line 2, column 6: this is no JSON: key must be a string"
        );
        let bad: &[u8] = b"name,categoryId\n\xff,1\n";
        assert_eq!(read(bad).unwrap_err()[0].to_string(), "line 2, column 1: this is no UTF-8");
    }
}
