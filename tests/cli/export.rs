//! `petstore pets export`: files, what ends it early, and pages that cannot be trusted.

use std::time::Duration;

use petstore_mock::{Clock, MockServer, Operation, Seed, SeedPet};

use super::harness::{Petstore, noon, stocked};
use super::shop::{Paging, Shop};

fn pets(count: i64) -> Seed {
    (0..count).fold(Seed::none(), |seed, row| seed.pet(SeedPet::new("x", row)))
}

#[tokio::test]
async fn an_export_into_a_file_says_what_it_wrote() {
    let server = MockServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let wrote = "note: wrote 25 pets\n";
    for (words, said, code) in [
        ("/pets.csv", wrote, 0),
        ("/pets.json", wrote, 0),
        ("/pets.txt --jq .[].name -o tsv", wrote, 0),
        (
            "/pets.ndjson.gz",
            "error: no format has the extension `.gz`\n\
             hint: `petstore pets export | gzip > FILE` compresses\n",
            2,
        ),
        (
            "/pets.xlsx",
            "error: no format has the extension `.xlsx`\nhint: `-o FORMAT` sets the format\n",
            2,
        ),
        (
            "/",
            "error: HOME/ is not a file\nhint: name a file in it\n",
            2,
        ),
        (
            "/nodir/x",
            "error: cannot write HOME/nodir/x: there is no folder HOME/nodir\n",
            2,
        ),
    ] {
        let petstore = Petstore::at(&server, "pro-key").home(folder.path());
        let line = format!("pets export {}{words}", folder.path().display());
        petstore.run(&line).await.said(said, code);
    }
    let pets = std::fs::read_to_string(folder.path().join("pets.csv")).unwrap();
    assert_eq!(pets.lines().count(), 26);
    assert!(pets.starts_with("id,name,"), "{pets}");
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let files = entries.filter(|entry| entry.as_ref().unwrap().path().is_file());
    assert_eq!(files.count(), 3);
}

#[tokio::test]
async fn an_export_that_may_not_be_complete_does_not_end_with_0() {
    for (seed, count, code) in [(Seed::default(), 25, 0), (pets(100), 100, 8)] {
        let builder = MockServer::builder().paging(false).seed(seed);
        let server = builder.start().await.unwrap();
        let ran = Petstore::at(&server, "pro-key").run("pets export").await;
        assert_eq!(ran.stdout.lines().count(), count);
        ran.ended(code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminal_shows_how_far_an_export_is() {
    let builder = MockServer::builder().seed(pets(300));
    let server = builder.clock(Clock::runtime(noon())).start().await.unwrap();
    let lists = server.faults().on(Operation::ListPets);
    let _slow = lists.delay(Duration::from_secs(2));
    let petstore = Petstore::at(&server, "pro-key").stderr_terminal();
    let ran = petstore.run("pets export").await;
    ran.says(" exporting pets: 200 so far");
    assert!(ran.stderr.ends_with("\r\u{1b}[K"), "{}", ran.stderr);
    assert_eq!((ran.stdout.lines().count(), ran.code), (300, 0));
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_export_says_what_can_continue() {
    let server = stocked(pets(150)).await;
    let lists = server.faults().on(Operation::ListPets);
    let _slow = lists.after(1).delay(Duration::from_secs(10));
    let petstore = Petstore::at(&server, "k").interrupted_after(Duration::from_secs(1));
    let ran = petstore.run("pets export --fields id -o csv").await;
    assert_eq!(ran.stdout.lines().count(), 101);
    let said = "error: interrupted after 100 pets\n\
                hint: an export into a file can continue: `petstore pets export FILE`\n";
    ran.said(said, 130);
}

#[tokio::test(start_paused = true)]
async fn an_export_of_pages_without_end_advises_no_continuation() {
    let (shop, folder) = (Shop::start(), tempfile::tempdir().unwrap());
    shop.add(&["Rex"; 230]);
    let path = folder.path().join("pets.ndjson");
    let export = async |file: &str| {
        let petstore = Petstore::with(&shop.url(), "k").home(folder.path());
        petstore.run(&format!("pets export {file}")).await
    };
    shop.state().paging = Paging::Repeated;
    let streamed = export("").await;
    streamed.never_says("continue");
    streamed.ended(5);
    let written = export(path.to_str().unwrap()).await;
    written.says("error: stopped after 100 pets: stopped before the last page: ");
    written.says("hint: `rm HOME/pets.ndjson.petstore-part` lets the same command start over\n");
    written.ended(5);
    shop.state().paging = Paging::Linked;
    std::fs::remove_file(folder.path().join("pets.ndjson.petstore-part")).unwrap();
    export(path.to_str().unwrap()).await.ended(0);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 230);
}

#[tokio::test]
#[cfg(unix)]
async fn the_hint_to_remove_an_unfinished_export_names_that_file() {
    let (shop, folder) = (Shop::start(), tempfile::tempdir().unwrap());
    shop.add(&["Rex"; 230]);
    shop.state().paging = Paging::Repeated;
    let spaced = folder.path().join("my dir");
    std::fs::create_dir(&spaced).unwrap();
    std::fs::write(spaced.join("pets.ndjson"), "").unwrap();
    let link = folder.path().join("link.ndjson");
    std::os::unix::fs::symlink("my dir/pets.ndjson", &link).unwrap();
    let part = "rm 'HOME/my dir/pets.ndjson.petstore-part'";
    let expected = [
        format!("hint: `{part}` lets the same command start over\n"),
        format!("hint: `{part}` lets this one start\n"),
    ];
    for (hint, status) in expected.iter().zip(["sold", "pending"]) {
        for file in [spaced.join("pets.ndjson"), link.clone()] {
            let petstore = Petstore::with(&shop.url(), "k").home(folder.path());
            let words = ["pets", "export", file.to_str().unwrap(), "--status", status];
            petstore.run_words(&words).await.says(hint);
        }
    }
}

#[tokio::test]
async fn an_export_notices_pages_that_overlap() {
    let shop = Shop::start();
    shop.add(&["Rex"; 230]);
    let overlap = "error: pet 51 came twice: the pages overlap, and pets may be missing\n";
    for (paging, said, code) in [(Paging::Linked, "", 0), (Paging::Overlapping, overlap, 8)] {
        shop.state().paging = paging;
        let ran = Petstore::with(&shop.url(), "k").run("pets export").await;
        ran.said(said, code);
        assert_eq!(ran.stdout.lines().count(), 230);
    }
}
