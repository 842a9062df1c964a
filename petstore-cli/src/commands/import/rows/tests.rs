//! Tests of how inputs are read, and of the messages for invalid ones.

use petstore_client::{Pet, PetStatus};

use super::*;

fn read(text: &str) -> Rows {
    Rows::read("pets", text.as_bytes().to_vec(), None).unwrap()
}

fn pets(text: &str) -> Vec<NewPet> {
    let rows = read(text).rows.into_iter();
    rows.map(|row| row.pet.unwrap().0).collect()
}

fn message(bytes: &[u8]) -> String {
    let rows = Rows::read("pets.csv", bytes.to_vec(), None);
    let Err(CliError::Failure(failure)) = rows.and_then(|rows| rows.check()) else {
        panic!("no failure")
    };
    [vec![failure.message], failure.list].concat().join(" | ")
}

/// The first has every field.
fn three() -> Vec<NewPet> {
    vec![
        NewPet::new("Rex", 7).with_status(PetStatus::Sold),
        NewPet::new("", -1),
        NewPet::new("a,\"b\"\nc", i64::MAX),
    ]
}

#[test]
fn reads_the_same_pets_from_every_format() {
    let first = serde_json::to_value(&three()[0]).unwrap();
    for field in &Pet::FIELDS[1..] {
        assert!(first.get(field).is_some(), "no pet has the field {field}");
    }
    let ndjson = concat!(
        "\u{feff}{\"id\":1,\"name\":\"Rex\",\"categoryId\":7,\"status\":\"sold\"}\r\n\n",
        "{\"name\":\"\",\"categoryId\":-1,\"status\":null}\n",
        "{\"categoryId\":9223372036854775807,\"name\":\"a,\\\"b\\\"\\nc\"}",
    );
    assert_eq!(pets(ndjson), three());
    let lines: Vec<_> = ndjson
        .trim_start_matches('\u{feff}')
        .lines()
        .filter(|l| !l.is_empty())
        .collect();
    assert_eq!(pets(&format!("[{}]", lines.join(",\n"))), three());
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
fn knows_the_line_of_each_row() {
    for (text, lines) in [
        ("\nname,categoryId\r\n\"R\nex\",7\n\n\nB,8\n", [3, 7]),
        (
            "\n{\"name\":\"a\",\"categoryId\":1} \n\n{\"name\":\"b\",\"categoryId\":1}",
            [2, 4],
        ),
    ] {
        let rows: Vec<_> = read(text).rows.iter().map(|row| row.line).collect();
        assert_eq!(rows, lines, "{text}");
    }
}

#[test]
fn reports_every_invalid_row_at_once() {
    let ndjson = "{\"name\":1,\"categoryId\":7.5}\n{\"nmae\":\"a\",\"categoryId\":1,\"status\":\"slod\"}\n[]\n";
    assert_eq!(
        message(ndjson.as_bytes()),
        "3 rows of pets.csv are invalid; nothing was sent | line 1, name: `1` is not text \
         | line 1, categoryId: `7.5` is not a whole number | line 2, nmae: unknown; did you mean \
         `name`? | line 2, name: missing | line 2, status: `slod` is not available, pending or \
         sold | line 3: `[]` is not an object"
    );
    assert_eq!(
        message(b"name,categoryId,status\na,x,sold\nb\nc,1,gone\n"),
        "3 rows of pets.csv are invalid; nothing was sent | line 2, categoryId: `x` is not a \
         whole number | line 3: 1 value; the header has 3 | line 4, status: `gone` is not \
         available, pending or sold"
    );
    assert_eq!(
        message(br#"[{"name":"a","categoryId":1},{"name":2,"categoryId":1},{"name":"c"}]"#),
        "2 rows of pets.csv are invalid; nothing was sent | row 2, name: `2` is not text | row 3, \
         categoryId: missing"
    );
}

#[test]
fn rows_that_share_a_line_are_numbered() {
    let rows = read("[{\"name\":\"a\",\"categoryId\":1},{},\n {}]");
    let places = [0, 1, 2].map(|row| rows.place(row));
    assert_eq!(places, ["row 1", "row 2", "line 2"]);
}

#[test]
fn counts_lines_that_end_with_a_carriage_return_alone() {
    let expected = "1 row of pets.csv is invalid; nothing was sent | line 3, categoryId: `x` is \
                    not a whole number";
    for end in ["\r", "\r\n", "\n"] {
        let text = ["name,categoryId", "Rex,7", "Tom,x", ""].join(end);
        assert_eq!(message(text.as_bytes()), expected, "{end:?}");
    }
}

#[test]
fn names_errors_of_the_whole_input() {
    for (input, expected) in [
        ("name;categoryId;status\nRex;7;\n", "is separated by `;`"),
        ("name|categoryId\nRex|7\n", "is separated by `|`"),
        ("Name;Category\nRex;7\n", "is separated by `;`"),
        ("\rRex,7\rTom,8\r", "has no header: line 2 is `Rex,7`"),
        (
            "Rex,7,available\nTom,8,sold\n",
            "has no header: line 1 is `Rex,7,available`",
        ),
        (
            "name,status\nRex,sold\n",
            "cannot be read: its header, line 1, is wrong | no column `categoryId`",
        ),
        (
            "nme,category,Status\nRex,7,sold\n",
            "cannot be read: its header, line 1, is wrong \
             | unknown column `nme`; did you mean `name`? \
             | unknown column `category`; did you mean `categoryId`? \
             | unknown column `Status`; did you mean `status`?",
        ),
        (
            "name,name,categoryId\n",
            "cannot be read: its header, line 1, is wrong | 2 columns `name`",
        ),
        (
            "name,categoryId\na,1\n\"b,2\nc,3\n",
            "line 3: a quote is never closed",
        ),
        (
            "categoryId,name\n1,a\n2,\"b\n3,c\n",
            "line 3: a quote is never closed",
        ),
        (
            "{\"name\":\"a\",\"categoryId\":1}\n{\"name\"}\n",
            "line 2: not valid JSON at column 8",
        ),
        (
            "[{\"name\":\"a\",\"categoryId\":1},\n 7, {]",
            "line 2: not valid JSON at column 6",
        ),
        ("{\"name\":\"a\"\n", "line 1: the JSON ends too early"),
    ] {
        assert_eq!(
            message(input.as_bytes()),
            format!("pets.csv {expected}"),
            "{input}"
        );
    }
    assert_eq!(
        pets("name,categoryId\n6\" fish,7\n"),
        [NewPet::new("6\" fish", 7)]
    );
    assert_eq!(message(b"\x1f\x8b\x08\0\xff"), "pets.csv is not text");
    for (input, line, encoding) in [
        (&b"name,categoryId\n\xff,1\n"[..], 2, "latin1"),
        (b"\xff\xfen\0", 1, "utf-16"),
    ] {
        let error = Rows::read("a.csv", input.to_vec(), None).unwrap_err();
        let CliError::Failure(failure) = error else {
            panic!()
        };
        assert_eq!(failure.message, format!("a.csv line {line} is not UTF-8"));
        let hint = format!("`iconv -f {encoding} -t utf-8` converts it");
        assert_eq!(failure.hint, Some(hint));
    }
    assert_eq!(
        read("name,categoryId,colour\nRex,7,red\n").ignored,
        ["colour"]
    );
}

#[test]
fn rows_are_written_with_a_reason_and_can_be_read_again() {
    let rejected = |text: &str, rows: &[usize]| {
        let reasons = rows
            .iter()
            .map(|row| (*row, Value::from("400: \"no\", it said")))
            .collect();
        String::from_utf8(read(text).with_column("reason", &reasons).unwrap()).unwrap()
    };
    let csv = "id,name,categoryId\n1,a,1\n2,\"b\nb\",2\n3,c,3";
    let out = rejected(csv, &[1, 2]);
    let reason = "\"400: \"\"no\"\", it said\"";
    let expected = format!("id,name,categoryId,reason\n2,\"b\nb\",2,{reason}\n3,c,3,{reason}\n");
    assert_eq!(out, expected);
    assert_eq!(pets(&out), pets(csv)[1..]);
    let json = r#"[{"name":"a",
                    "categoryId":1}, {"name":"b","categoryId":2,"chip":{"code":1.50} }]"#;
    let out = rejected(json, &[0, 1]);
    let chip = r#""chip":{"code":1.50},"reason":"400: \"no\", it said"}"#;
    assert!(
        out.lines().count() == 2 && out.trim_end().ends_with(chip),
        "{out}"
    );
    assert_eq!(pets(&out), pets(json));
}

#[test]
fn invalid_rows_keep_their_place_and_have_their_reasons() {
    let csv = read("name,categoryId\na,1\nb,x\nc\nd,4\n");
    assert_eq!((csv.all().len(), csv.invalid()), (4, 2));
    assert!(csv.all()[3].pet().is_some());
    let text = String::from_utf8(csv.with_column("reason", &csv.reasons()).unwrap()).unwrap();
    let expected = "name,categoryId,reason\nb,x,categoryId: `x` is not a whole number\n\
                    c,,1 value; the header has 2\n";
    assert_eq!(text, expected);
    let json = read("{\"name\":\"a\",\"categoryId\":1}\n7\n{}\n");
    let text = String::from_utf8(json.with_column("reason", &json.reasons()).unwrap()).unwrap();
    let expected = "{\"value\":7,\"reason\":\"`7` is not an object\"}\n\
                    {\"reason\":\"name: missing; categoryId: missing\"}\n";
    assert_eq!(text, expected);
}

#[test]
fn the_digest_of_a_row_does_not_depend_on_its_form() {
    let digest = |text: &str| read(text).all()[0].digest().unwrap();
    let first = digest("name,categoryId\nRex,7\n");
    assert_eq!(
        digest("{\"categoryId\": 7, \"id\": 3, \"name\": \"Rex\"}"),
        first
    );
    assert_ne!(digest("name,categoryId\nRex,8\n"), first);
    assert_ne!(digest("name,categoryId,status\nRex,7,sold\n"), first);
    assert_eq!(Digest::parse(&first.to_string()), Some(first));
}

#[test]
fn other_columns_are_named_once_without_those_of_own_files() {
    let rows = "{\"name\":\"a\",\"categoryId\":1,\"colour\":1,\"id\":2}\n";
    assert_eq!(read(&rows.repeat(2)).ignored, ["colour"]);
    let csv = "id,name,categoryId,petId,reason,colour;size\n1,a,1,2,3,4\n";
    assert_eq!(read(csv).ignored, ["colour;size"]);
}

#[test]
fn a_json_row_that_cannot_be_read_says_why() {
    for (row, why) in [
        ("[1]", "`1` is not an object"),
        (
            "{\"name\":\"a\",\"categoryId\":9223372036854775808}",
            "categoryId: `9223372036854775808` is out of range",
        ),
        (
            "{\"\\ud800\":1,\"name\":\"a\",\"categoryId\":1}",
            "the name of a field is not Unicode",
        ),
    ] {
        let said = message(row.as_bytes());
        assert!(said.contains(why), "{row}: {said}");
    }
}
