//! Tests of pages: the client follows every valid `Link: …; rel="next"`.

use futures_util::TryStreamExt as _;
use petstore_client::{Client, Error, ErrorKind, More, PetStatus};

use super::kit::{answer, builder, client};
use super::wire::{Act, Wire, listen};

fn pets(ids: &[i64]) -> String {
    let one = |id: &i64| format!(r#"{{"id":{id},"name":"p{id}","categoryId":1}}"#);
    format!("[{}]", ids.iter().map(one).collect::<Vec<_>>().join(","))
}

fn page(ids: &[i64], links: &[&str]) -> Act {
    let links: Vec<_> = links.iter().map(|link| ("Link", *link)).collect();
    answer(200, &links, pets(ids))
}

async fn ids(client: &Client) -> Result<Vec<i64>, Error> {
    client.pets().list().limit(2).items().map_ok(|pet| pet.id).try_collect().await
}

#[tokio::test]
async fn follows_every_way_to_write_the_next_page() {
    for (link, target) in [
        ("</v1/pets?limit=2&cursor=x>; rel=\"next\"", "/v1/pets?limit=2&cursor=x"),
        ("<?cursor=x>; rel=next", "/v1/pets?cursor=x"),
        ("<pets?cursor=x>; rel=next", "/v1/pets?cursor=x"),
        ("<../v1/pets?cursor=a%2Fb>; rel=next", "/v1/pets?cursor=a%2Fb"),
        ("</v1/pets?c=1,2;3>; title=\"a, b; rel=\\\"last\\\"\"; rel=\"next\"", "/v1/pets?c=1,2;3"),
        ("</a>; rel=prev, </b>; rel=\"last next first\", </c>; rel=next", "/b"),
        ("</a>; rel=first; rel=next, </b>;REL=NEXT", "/b"),
        ("</b#fragment>; rel=next", "/b"),
    ] {
        let server = Wire::of(vec![page(&[1, 2], &[link]), page(&[3], &[])]);
        assert_eq!(ids(&client(&server.base())).await.unwrap(), [1, 2, 3], "{link}");
        assert_eq!(server.targets()[1], target);
    }
}

#[tokio::test]
async fn follows_a_whole_address_on_the_same_origin() {
    let listener = listen();
    let link = format!("<http://{}/v1/pets?cursor=x>; rel=next", listener.local_addr().unwrap());
    let server = Wire::at(listener, move |number| match number {
        0 => page(&[1, 2], &["</x>; rel=last", &link]),
        _ => page(&[3], &[]),
    });
    assert_eq!(ids(&client(&server.base())).await.unwrap(), [1, 2, 3]);
    assert_eq!(server.targets()[1], "/v1/pets?cursor=x");
}

#[tokio::test]
async fn asks_the_first_page_only_with_what_was_asked_and_never_invents_a_parameter() {
    let server = Wire::of(vec![page(&[1, 2], &["<?cursor=x>; rel=next"]), page(&[], &[])]);
    let client = client(&server.base());
    let list = client.pets().list().limit(2).status(PetStatus::Sold);
    let pages: Vec<_> = list.pages().try_collect().await.unwrap();
    let more: Vec<_> = pages.iter().map(|page| (page.len(), page.more())).collect();
    assert_eq!(more, [(2, More::Yes), (0, More::No)]);
    assert_eq!(server.targets(), ["/v1/pets?limit=2&status=sold", "/v1/pets?cursor=x"]);
}

#[tokio::test]
async fn an_empty_page_in_the_middle_does_not_end_the_stream() {
    let server = Wire::of(vec![
        page(&[], &["<?c=1>; rel=next"]),
        page(&[1], &["<?c=2>; rel=next"]),
        page(&[], &["<?c=3>; rel=next"]),
        page(&[], &["<?c=4>; rel=next"]),
        page(&[2], &[]),
    ]);
    assert_eq!(ids(&client(&server.base())).await.unwrap(), [1, 2]);
    assert_eq!(server.count(), 5);
}

#[tokio::test]
async fn a_full_page_without_a_link_says_that_there_may_be_more() {
    let twenty: Vec<i64> = (1..=20).collect();
    let server = Wire::start(move |_| page(&twenty, &[]));
    let client = client(&server.base());
    let list = client.pets().list();
    assert_eq!(list.clone().send().await.unwrap().more(), More::Maybe);
    assert_eq!(list.clone().limit(20).send().await.unwrap().more(), More::Maybe);
    assert_eq!(list.limit(21).send().await.unwrap().more(), More::No);
}

#[tokio::test]
async fn each_page_is_retried_and_limited_like_any_call() {
    let server = Wire::of(vec![
        page(&[1, 2], &["<?c=1>; rel=next"]),
        answer(503, &[], ""),
        page(&[3, 4], &["<?c=2>; rel=next"]),
        answer(500, &[], ""),
    ]);
    let client = client(&server.base());
    let mut pages = client.pets().list().limit(2).max_attempts(2).pages();
    assert_eq!(pages.try_next().await.unwrap().unwrap().meta().attempts(), 1);
    assert_eq!(pages.try_next().await.unwrap().unwrap().meta().attempts(), 2);
    let error = pages.try_next().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Server, 2));
    assert_eq!(error.operation(), Some("listPets"));
    assert!(pages.try_next().await.unwrap().is_none(), "the stream ends after its first error");
}

#[tokio::test]
async fn a_stream_asks_only_when_it_is_polled() {
    let server = Wire::start(|number| {
        let id = i64::try_from(number).unwrap();
        page(&[id], &[&format!("<?c={number}>; rel=next")])
    });
    let client = client(&server.base());
    let mut items = client.pets().list().items();
    assert_eq!(server.count(), 0);
    items.try_next().await.unwrap();
    assert_eq!(server.count(), 1);
    drop(items);
}

#[tokio::test]
async fn a_limit_out_of_range_is_the_streams_only_element() {
    let client = builder("http://127.0.0.1:1").build().unwrap();
    let mut pages = client.pets().list().limit(0).pages();
    assert_eq!(pages.try_next().await.unwrap_err().kind(), ErrorKind::InvalidRequest);
    assert!(pages.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_list_goes_on_later_from_a_page_that_was_named_as_next() {
    let server = Wire::of(vec![
        page(&[1, 2], &["</v1/pets?cursor=x>; rel=next"]),
        page(&[3, 4], &["</v1/pets?cursor=y>; rel=next"]),
        page(&[5], &[]),
    ]);
    let client = client(&server.base());
    let first = client.pets().list().limit(2).send().await.unwrap();
    let next = first.next_url().unwrap().clone();
    let rest = client.pets().list().limit(2).from_page(next).items();
    let rest: Vec<_> = rest.map_ok(|pet| pet.id).try_collect().await.unwrap();
    assert_eq!(rest, [3, 4, 5]);
    assert_eq!(server.targets()[1..], ["/v1/pets?cursor=x", "/v1/pets?cursor=y"]);
    // Wherever a URL comes from, the key goes only to its origin.
    let elsewhere = "http://127.0.0.1:9/v1/pets".parse().unwrap();
    let error = client.pets().list().from_page(elsewhere).send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
}
