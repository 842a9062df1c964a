// The page as a whole: reads everything once, and then what the mock's events say has changed.

import { ApiError, listen, post, setToken } from "./api.js";
import * as clock from "./clock.js";
import { attempt, find } from "./dom.js";
import * as faults from "./faults.js";
import * as keys from "./keys.js";
import * as pets from "./pets.js";
import * as report from "./report.js";
import * as requests from "./requests.js";
import * as timeline from "./timeline.js";

const PARTS = { clock, keys, faults, pets, report, requests };
/** What a request may have changed, besides the list of requests. */
const TOUCHED = ["keys", "report", "faults", "pets"];
const SOON = 250;

const refreshAll = () => Promise.all(Object.values(PARTS).map((part) => part.refresh()));

const stale = new Set();

/** Reads some parts again, soon: many events are one reading. */
function touch(parts) {
  if (stale.size === 0) setTimeout(attempt(freshen), SOON);
  for (const part of parts) stale.add(part);
}

async function freshen() {
  const parts = [...stale];
  stale.clear();
  await Promise.all(parts.map((part) => PARTS[part].refresh()));
}

function happened(event, data) {
  if (event === "exchange") {
    requests.add(data);
    const reads = data.method === "GET" || data.method === "HEAD";
    touch(reads ? TOUCHED.filter((part) => part !== "pets") : TOUCHED);
  } else {
    touch(Object.keys(PARTS));
  }
}

function show(state, text) {
  find("#link").dataset.state = state;
  find("#link").textContent = text;
}

/** Follows the mock for as long as the page is open. */
async function follow() {
  for (;;) {
    try {
      await refreshAll();
      await listen("/events", { opened: () => show("live", "live"), event: happened });
    } catch (error) {
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return askForToken(error);
    }
    show("lost", "the mock does not answer: trying again");
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function askForToken(error) {
  show("lost", error.message);
  find("#token").hidden = false;
}

find("#reset").addEventListener("click", attempt(async () => {
  if (!confirm("Reset pets, quotas, bans, faults and requests to what the mock started with?")) return;
  await post("/reset");
  await refreshAll();
}));

find("#token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(new FormData(event.target).get("token"));
  event.target.hidden = true;
  follow();
});

requests.watch(timeline.learnExchanges);
keys.watch(requests.offerKeys);
keys.watch(timeline.learnKeys);
clock.start();
requests.start();
timeline.start();
faults.start();
keys.start();
pets.start();
report.start(requests.open);
setInterval(() => {
  clock.tick();
  keys.tick();
  timeline.render();
}, 1000);
follow();
