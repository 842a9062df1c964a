//! Tests of how inputs are read, and of the messages for invalid ones. Property tests read them in
//! every form.

use petstore_client::{NewPet, Pet, PetStatus};

use super::*;

fn read(text: &str) -> Rows {
    Rows::read("pets", text.as_bytes().to_vec(), None).unwrap()
}

fn pets(text: &str) -> Vec<NewPet> {
    let rows = read(text);
    rows.all().iter().filter_map(Row::pet).cloned().collect()
}

fn failure(bytes: &[u8]) -> Failure {
    let rows = Rows::read("pets.csv", bytes.to_vec(), None);
    match rows.and_then(|rows| rows.check()) {
        Err(CliError::Failure(failure)) => *failure,
        other => panic!("{other:?}"),
    }
}

fn message(bytes: &[u8]) -> String {
    let failure = failure(bytes);
    [vec![failure.message], failure.list].concat().join(" | ")
}

#[test]
fn reads_the_same_pets_from_every_format() {
    let expected = [
        NewPet::new("Rex", 7).with_status(PetStatus::Sold),
        NewPet::new("", -1),
        NewPet::new("a,\"b\"\nc", i64::MAX),
    ];
    let objects = [
        r#"{"id":1,"name":"Rex","categoryId":7,"status":"sold"}"#,
        r#"{"name":"","categoryId":-1,"status":null}"#,
        r#"{"categoryId":9223372036854775807,"name":"a,\"b\"\nc"}"#,
    ];
    assert_eq!(pets(&objects.join("\r\n\n")), expected);
    assert_eq!(pets(&format!("[{}]", objects.join(",\n"))), expected);
    for separator in [",", "\t", ";", "|"] {
        let header = ["id", "name", "categoryId", "status"].join(separator);
        let first = ["1", "Rex", "7", "sold"].join(separator);
        let second = ["2", "", "-1", ""].join(separator);
        let third = ["", "\"a,\"\"b\"\"\nc\"", "9223372036854775807", ""].join(separator);
        let text = [header, first, second, third].join("\n");
        assert_eq!(pets(&text), expected, "{text}");
    }
    for empty in ["", "\n", "[]", " [ ]\n", "name,categoryId\n"] {
        assert_eq!(pets(empty), [], "{empty:?}");
    }
    let inches = "name,categoryId\n6\" fish,7\n";
    assert_eq!(pets(inches), [NewPet::new("6\" fish", 7)]);
}

#[test]
fn reports_every_invalid_row_at_once() {
    for (text, expected) in [
        (
            "{\"name\":1,\"categoryId\":7.5}\n{\"nmae\":\"a\",\"categoryId\":1,\"status\":\"slod\"}\n[]\n",
            "3 rows of pets.csv are invalid; nothing was sent | line 1: name: `1` is not text; \
             categoryId: `7.5` is not a whole number | line 2: nmae: unknown; did you mean `name`?; \
             name: missing; status: `slod` is not available, pending or sold | line 3: `[]` is not \
             an object",
        ),
        (
            "name,categoryId,status\na,x,sold\nb\nc,1,gone\n",
            "3 rows of pets.csv are invalid; nothing was sent | line 2: categoryId: `x` is not a \
             whole number | line 3: 1 value; the header has 3 | line 4: status: `gone` is not \
             available, pending or sold",
        ),
        // Two rows that share a line are numbered.
        (
            "[{\"name\":\"a\",\"categoryId\":1},{\"name\":2,\"categoryId\":1},\n{\"name\":\"c\"}]",
            "2 rows of pets.csv are invalid; nothing was sent | row 2: name: `2` is not text | line 2: \
             categoryId: missing",
        ),
        (
            "{\"name\":\"a\",\"categoryId\":9223372036854775808}",
            "1 row of pets.csv is invalid; nothing was sent | line 1: categoryId: \
             `9223372036854775808` is out of range",
        ),
        (
            "{\"\\ud800\":1,\"name\":\"a\",\"categoryId\":1}",
            "1 row of pets.csv is invalid; nothing was sent | line 1: the name of a field is not \
             Unicode",
        ),
        (
            "{\"name\":\"a\",\"name\":\"b\",\"categoryId\":1,\"x\":1,\"x\":2,\"categoryId\":\"y\"}",
            "1 row of pets.csv is invalid; nothing was sent | line 1: name: there are several; \
             categoryId: there are several; categoryId: `\"y\"` is not a whole number",
        ),
    ] {
        assert_eq!(message(text.as_bytes()), expected);
    }
}

#[test]
fn names_errors_of_the_whole_input() {
    for (input, expected) in [
        ("\nRex,7\nTom,8\n", "has no header: line 2 is `Rex,7`"),
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
            "cannot be read: quotes are wrong | line 3: a quote is never closed",
        ),
        (
            "categoryId,name\n1,a\n2,\"b\n3,c\n",
            "cannot be read: quotes are wrong | line 3: a quote is never closed",
        ),
        (
            "name,categoryId\n\"A,1\nB,2\n\"C,3\nD,4\n\"E \"e\" f\",5\nF,x\n",
            "cannot be read: quotes are wrong | line 2: `C,3` follows a closing quote \
             | line 6: `e\" f\",5` follows a closing quote | line 7: categoryId: `x` is not a \
             whole number",
        ),
        (
            "\"name\"s,categoryId\nA,1\n",
            "line 1: `s,categoryId` follows a closing quote",
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
        let expected = format!("pets.csv {expected}");
        assert_eq!(message(input.as_bytes()), expected, "{input}");
    }
}

#[test]
fn an_input_that_is_not_utf_8_is_refused_with_the_line() {
    for (input, line) in [
        (&b"name,categoryId\n\xff,1\n"[..], 2),
        (b"\x1f\x8b\x08\0\xff", 1),
    ] {
        let expected = format!("pets.csv line {line} is not UTF-8");
        assert_eq!(message(input), expected);
    }
}

#[test]
fn other_columns_are_named_once_without_those_of_own_files() {
    let rows = "{\"name\":\"a\",\"categoryId\":1,\"colour\":1,\"id\":2}\n";
    assert_eq!(read(&rows.repeat(2)).ignored(), ["colour"]);
    let csv = "id,name,categoryId,petId,reason,colour;size\n1,a,1,2,3,4\n";
    assert_eq!(read(csv).ignored(), ["colour;size"]);
    assert_eq!(pets("name,categoryId,\na,1,\n"), [NewPet::new("a", 1)]);
    assert!(read("name,categoryId,\na,1,\n").ignored().is_empty());
}

#[test]
fn invalid_rows_are_written_with_their_reasons_and_all_their_values() {
    for (text, expected) in [
        (
            "name,categoryId,colour\na,1,red\nb,x,blue\nc\n",
            "name,categoryId,colour,reason\nb,x,blue,categoryId: `x` is not a whole number\n\
             c,,,1 value; the header has 3\n",
        ),
        (
            "[{\"name\":\"a\",\n\"chip\":{\"code\":1.50} },7,{},{\"name\":\"a\",\"name\":\"b\",\"categoryId\":1}]",
            "{\"name\":\"a\",\"chip\":{\"code\":1.50},\"reason\":\"categoryId: missing\"}\n\
             {\"value\":7,\"reason\":\"`7` is not an object\"}\n\
             {\"reason\":\"name: missing; categoryId: missing\"}\n\
             {\"value\":\"{\\\"name\\\":\\\"a\\\",\\\"name\\\":\\\"b\\\",\\\"categoryId\\\":1}\",\"reason\":\"name: there are \
             several\"}\n",
        ),
    ] {
        let rows = read(text);
        let reasons = rows.invalid().map(|(row, why)| (row, why.into()));
        let written = rows.with_column("reason", &reasons.collect()).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}

#[test]
fn the_digest_of_a_row_does_not_depend_on_its_form() {
    let digest = |text: &str| read(text).all()[0].digest();
    assert_eq!(
        digest("name,categoryId\nRex,7\n"),
        digest("{\"categoryId\": 7, \"id\": 3, \"name\": \"Rex\"}"),
    );
}

#[test]
fn the_digest_of_a_row_depends_on_each_field() {
    let row = json!({ "name": "Rex", "categoryId": 7, "status": "sold" });
    let digest = |row: &Value| Digest::of(&serde_json::from_value(row.clone()).unwrap());
    let first = digest(&row);
    for field in &Pet::FIELDS[1..] {
        let mut other = row.clone();
        other[field] = match row[field].is_string() {
            true => "pending".into(),
            false => 8.into(),
        };
        assert_ne!(digest(&other), first, "{field}");
    }
    let hash = Sha256::digest(r#"{"categoryId":7,"name":"Rex","status":"sold"}"#);
    assert!(
        first
            .0
            .starts_with(&format!("{:02x}{:02x}", hash[0], hash[1]))
    );
}
