//! A browser that shows the inspector of a mock.

use std::process::Stdio;
use std::time::Duration;

use fantoccini::{Client, ClientBuilder, Locator, elements::Element};
use hyper_util::client::legacy::connect::HttpConnector;
use petstore_mock::{Builder, Clock, MockServer};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// 2026-01-01T00:00:10Z: 50 seconds before the minute ends.
pub(crate) const NOW: u64 = 1_767_225_610;

/// The interval of checks of the page.
const STEP: Duration = Duration::from_millis(20);
/// The longest wait for a change of the page. Even a slow machine needs less.
const PATIENCE: Duration = Duration::from_secs(60);

/// A mock and its inspector page.
pub(crate) struct Browser {
    server: Option<MockServer>,
    pub(crate) page: Client,
    http: reqwest::Client,
    /// The driver. Killing it also ends the browser.
    driver: Child,
}

/// Opens the inspector of a mock with a frozen clock.
pub(crate) async fn open() -> Browser {
    open_with(|builder| builder, &[]).await
}

/// Opens the inspector with other settings of the mock and the browser.
pub(crate) async fn open_with(set: impl FnOnce(Builder) -> Builder, flags: &[&str]) -> Browser {
    let clock = Clock::frozen(std::time::UNIX_EPOCH + Duration::from_secs(NOW));
    let server = set(MockServer::builder().clock(clock))
        .start()
        .await
        .unwrap();
    let (driver, port) = start_driver().await;
    let page = ClientBuilder::new(HttpConnector::new())
        .capabilities(capabilities(flags))
        .connect(&format!("http://127.0.0.1:{port}"))
        .await
        .unwrap();
    page.goto(&format!("{}/_mock/", server.origin()))
        .await
        .unwrap();
    let mut http = reqwest::Client::builder().no_proxy().timeout(PATIENCE);
    if let Some(authority) = server.ca_certificate() {
        let authority = reqwest::Certificate::from_pem(authority.as_bytes()).unwrap();
        http = http.tls_certs_merge([authority]);
    }
    let http = http.build().unwrap();
    let browser = Browser {
        server: Some(server),
        page,
        http,
        driver,
    };
    browser.sees("#link", "live").await;
    browser
}

async fn start_driver() -> (Child, u16) {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("chromedriver is installed");
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            return (driver, port.trim_end_matches('.').parse().unwrap());
        }
    }
    panic!("chromedriver ended before it was ready");
}

fn capabilities(flags: &[&str]) -> Map<String, Value> {
    let quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
    ];
    let args: Vec<&str> = quiet.iter().chain(flags).copied().collect();
    let capabilities = json!({
        "goog:chromeOptions": {"args": args},
    });
    capabilities.as_object().unwrap().clone()
}

impl Browser {
    pub(crate) fn server(&self) -> &MockServer {
        self.server.as_ref().expect("it has not been stopped")
    }

    /// Stops the mock while the page is open.
    pub(crate) fn stop_server(&mut self) {
        self.server = None;
    }

    /// Sends a request with the Free key, and returns the status.
    async fn send(&self, request: reqwest::RequestBuilder) -> u16 {
        let request = request.bearer_auth("free-key");
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        // An unread body would keep the connection in use.
        response.bytes().await.unwrap();
        status
    }

    /// Adds a pet, like a client under test.
    pub(crate) async fn create(&self, name: &str) -> u16 {
        let pet = json!({"name": name, "categoryId": 7}).to_string();
        let request = self.http.post(format!("{}/pets", self.server().url()));
        self.send(request.header("content-type", "application/json").body(pet))
            .await
    }

    /// Sends a GET, like a client under test.
    pub(crate) async fn get(&self, path: &str) -> u16 {
        self.send(self.http.get(format!("{}{path}", self.server().url())))
            .await
    }

    pub(crate) async fn find(&self, css: &str) -> Element {
        self.page.find(Locator::Css(css)).await.unwrap()
    }

    /// Types a text into a field.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        self.find(css).await.send_keys(text).await.unwrap();
    }

    /// Selects an option once it is there.
    pub(crate) async fn select(&self, css: &str, label: &str) {
        self.sees(css, label).await;
        self.find(css).await.select_by_label(label).await.unwrap();
    }

    pub(crate) async fn click(&self, css: &str) {
        self.find(css).await.click().await.unwrap();
    }

    /// Returns the text of a part of the page.
    pub(crate) async fn text(&self, css: &str) -> String {
        // The part may be redrawn at this moment.
        match self.page.find(Locator::Css(css)).await {
            Ok(element) => element.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// Answers all further questions of the page with yes.
    pub(crate) async fn confirm(&self) {
        self.script("window.confirm = () => true").await;
    }

    /// Waits until a part of the page shows a text.
    pub(crate) async fn sees(&self, css: &str, text: &str) {
        self.until(css, |shown| shown.contains(text), text).await;
    }

    /// Waits until a part of the page no longer shows a text.
    pub(crate) async fn sees_no(&self, css: &str, text: &str) {
        self.until(css, |shown| !shown.contains(text), &format!("no {text}"))
            .await;
    }

    async fn until(&self, css: &str, is_there: impl Fn(&str) -> bool, wanted: &str) {
        let start = tokio::time::Instant::now();
        loop {
            let shown = self.text(css).await;
            if is_there(&shown) {
                return;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{css} never shows {wanted:?}, but: {shown}"
            );
            tokio::time::sleep(STEP).await;
        }
    }

    /// Runs a script in the page and returns its result.
    pub(crate) async fn script(&self, script: &str) -> Value {
        self.page.execute(script, Vec::new()).await.unwrap()
    }

    /// Ends the browser.
    pub(crate) async fn close(self) {
        let Self {
            page, mut driver, ..
        } = self;
        page.close().await.unwrap();
        driver.kill().await.unwrap();
    }
}
