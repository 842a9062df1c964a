//! Successful answers whose JSON is not, or not quite, what the contract says.

use petstore_client::{Error, ErrorKind, NewPet, Pet, PetStatus};

use super::kit::{answer, client, once};
use super::wire::Wire;

async fn list(body: &[u8]) -> Result<Vec<Pet>, Error> {
    let server = Wire::of(vec![answer(200, &[], body)]);
    let page = client(&server.base()).pets().list().await;
    assert_eq!(server.count(), 1);
    Ok(page?.into_inner().into_items())
}

async fn refused(body: &str) -> Error {
    let error = list(body.as_bytes()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{body}: {error}");
    assert_eq!(error.status().unwrap(), 200);
    assert_eq!(error.operation(), Some("listPets"));
    error
}

#[tokio::test]
async fn unknown_values_and_fields_survive() {
    let pets = list(
        br#"[{"id":1,"name":"a","categoryId":1,"status":"on loan","chip":{"a":[1e300,null]}},
             {"id":2,"name":"b","categoryId":1,"status":null},
             {"id":3,"name":"","categoryId":1}]"#,
    );
    let pets = pets.await.unwrap();
    assert_eq!(pets[0].status, Some(PetStatus::Unknown("on loan".into())));
    assert_eq!(pets[0].extra["chip"], serde_json::json!({"a": [1e300, null]}));
    assert_eq!((&pets[1].status, &pets[2].status), (&None, &None));
}

#[tokio::test]
async fn says_where_a_value_has_the_wrong_type() {
    for (body, path) in [
        (r#"[{"id":"1","name":"a","categoryId":1}]"#, "[0].id"),
        (r#"[{"id":1.0,"name":"a","categoryId":1}]"#, "[0].id"),
        (r#"[{"id":9223372036854775808,"name":"a","categoryId":1}]"#, "[0].id"),
        (r#"[{"id":1,"name":null,"categoryId":1}]"#, "[0].name"),
        (r#"[{"id":1,"name":"a","categoryId":1,"status":7}]"#, "[0].status"),
        (r#"[{"id":1,"name":"a","categoryId":1},{"id":2,"name":"b"}]"#, "[1]"),
        (r#"[{"id":1,"id":2,"name":"a","categoryId":1}]"#, "[0]"),
        (r#"{"pets":[]}"#, "."),
        ("null", "."),
    ] {
        let error = refused(body).await;
        assert_eq!(error.decode_path(), Some(path), "{body}");
        assert!(error.to_string().contains(&format!("at `{path}`: ")), "{error}");
        assert_eq!(error.body().unwrap(), body);
    }
}

#[tokio::test]
async fn says_that_a_body_is_no_json() {
    for body in ["<!doctype html><p>Hello", "[{]", "[", "[]x", "\u{feff}[]", "NaN"] {
        let error = refused(body).await.to_string();
        assert!(error.contains("its body is not JSON"), "{body}: {error}");
    }
    for body in ["", " \r\n"] {
        assert!(refused(body).await.to_string().contains("its body is empty"));
    }
}

#[tokio::test]
async fn survives_a_body_that_is_no_utf_8() {
    let error = list(b"[{\"id\":1,\"name\":\"\xff\xfe\",\"categoryId\":1}]").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.body().unwrap().windows(2).any(|bytes| bytes == b"\xff\xfe"));
}

#[tokio::test]
async fn survives_json_nested_beyond_any_sense() {
    let depth = 1_000_000;
    let unknown = format!(
        r#"[{{"id":1,"name":"a","categoryId":1,"x":{}{}}}]"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    // Deep nesting in a field that is ignored is as good as none, or refused: never a crash.
    let _ = list(unknown.as_bytes()).await;
    let error = refused(&"[".repeat(depth)).await;
    assert_eq!(error.body().unwrap().len(), 64 * 1024);
}

#[tokio::test]
async fn a_huge_value_never_makes_a_huge_message() {
    let error = refused(&format!(r#"[{{"id":"{}"}}]"#, "x".repeat(1_000_000))).await;
    let source = std::error::Error::source(&error).unwrap();
    for text in [error.to_string(), source.to_string(), format!("{error:?}")] {
        assert!(text.len() < 5_000, "{} bytes", text.len());
    }
}

#[tokio::test]
async fn an_empty_success_where_a_pet_belongs_tells_that_it_may_have_been_added() {
    for status in [200, 201, 202, 204, 205] {
        let server = Wire::of(vec![answer(status, &[], "")]);
        let client = client(&server.base());
        let error = client.pets().create(&NewPet::new("a", 1)).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Decode && error.may_have_been_processed(), "{error}");
        assert_eq!(error.status().unwrap(), status);
    }
}

#[tokio::test]
async fn a_raw_answer_may_be_empty_or_anything() {
    let server = Wire::of(vec![answer(204, &[], "")]);
    let client = client(&server.base());
    let raw = client.request(petstore_client::Method::DELETE, "/pets/1").options(&once());
    let raw = raw.send().await.unwrap();
    assert_eq!((raw.meta().status().as_u16(), &*raw.text()), (204, ""));
    let error = raw.json::<Pet>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
    assert_eq!(error.operation(), Some("DELETE /pets/1"));
}
