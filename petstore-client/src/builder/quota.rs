//! How the quotas of a key are used, and with whom they are shared.

use std::path::PathBuf;

use super::ClientBuilder;

impl ClientBuilder {
    /// Sets how many requests may be under way at once. By default it is a tenth of the
    /// quota's limit, at least 32 and at most 256.
    pub fn max_in_flight(mut self, most: u32) -> Self {
        self.policy.max_in_flight = Some(most);
        self
    }

    /// Sets the plan of the key, in requests per minute and per day (specification, section 8), for
    /// services that do not show every quota that is in force. Own requests are then counted too,
    /// in the service's minutes and days; those of others cannot be.
    pub fn quota(mut self, per_minute: u64, per_day: u64) -> Self {
        self.policy.plan = Some((per_minute, per_day));
        self
    }

    /// Sets the part of each quota that this client may use, above 0 and up to 1: a quarter for
    /// each of four programs that share a key and do not know of each other.
    pub fn quota_share(mut self, share: f64) -> Self {
        self.policy.share = share;
        self
    }

    /// Spreads requests over the quota's window, in place of letting them go as they come.
    pub fn pacing(mut self, pacing: bool) -> Self {
        self.policy.pacing = pacing;
        self
    }

    /// Shares the limits of a key with the other processes of this machine that name the same
    /// folder, so that together they are not refused either. What is known is kept in a file there,
    /// one for each key and origin, which is locked for some microseconds at a time; the folder is
    /// made where it is missing. The key cannot be had from the files.
    ///
    /// Where a file cannot be had, the client goes on by itself, and as carefully as where others
    /// use the key unseen. A file that is damaged is replaced. Processes need the same idea of the
    /// time, as they have on one machine; the folder should not be on a network.
    ///
    /// ```no_run
    /// use petstore_client::Client;
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .shared_limits("/var/lib/kennel/limits")
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn shared_limits(mut self, folder: impl Into<PathBuf>) -> Self {
        self.shared = Some(folder.into());
        self
    }

    /// Switches the quota gate off. Refusals are still obeyed: what the service answers with 429
    /// holds all calls back. For servers whose rate limit headers mean something else.
    pub fn quota_gate(mut self, on: bool) -> Self {
        self.policy.gated = on;
        self
    }
}
