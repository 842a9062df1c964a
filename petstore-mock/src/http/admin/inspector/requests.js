// The requests, live: the last of them as a table with filters, each with all its details.

import { get } from "./api.js";
import { copyButton } from "./curl.js";
import { complain, find, make, swap } from "./dom.js";
import { nameOf, numberOf } from "./keys.js";
import * as time from "./time.js";

/** As many are kept here; the mock's own journal may hold more. */
const KEPT = 1000;
const SHOWN = 200;

let exchanges = [];
let seen = 0;
let due = false;
const watchers = [];

/** Calls back with all exchanges that are kept, whenever some were added. */
export const watch = (watcher) => watchers.push(watcher);

export async function refresh() {
  exchanges = await get(`/requests?limit=${KEPT}`);
  seen = exchanges.at(-1)?.number ?? 0;
  render();
}

export function add(exchange) {
  // What was read at the start may come again as an event.
  if (exchange.number <= seen && exchanges.some(({ number }) => number === exchange.number)) return;
  seen = Math.max(seen, exchange.number);
  exchanges.push(exchange);
  if (exchanges.length > 2 * KEPT) exchanges = exchanges.slice(-KEPT);
  if (due) return;
  // A flood of events is one drawing a frame.
  due = true;
  requestAnimationFrame(render);
}

function render() {
  due = false;
  for (const watcher of watchers) watcher(exchanges.slice(-KEPT));
  if (find("#filter").elements.pause.checked) return;
  const wanted = exchanges.filter(filter());
  find("#count").textContent = wanted.length === 0 ? "" : `the last ${Math.min(SHOWN, wanted.length)} of ${wanted.length}`;
  find("#empty").hidden = exchanges.length > 0;
  swap(find("#rows"), ...wanted.slice(-SHOWN).reverse().map(row));
  const table = find("#requests .scroll");
  find("#hint").hidden = table.scrollWidth <= table.clientWidth;
}

function filter() {
  const { key, operation, status, text } = Object.fromEntries(new FormData(find("#filter")));
  return (one) =>
    (key === "" || numberOf(one.key) === Number(key)) &&
    (operation === "" || (one.operation ?? "-") === operation) &&
    (status === "" || String(one.status ?? "").startsWith(status)) &&
    (text === "" || one.target.includes(text));
}

/** How a status is coloured. */
export function look({ status }) {
  if (status === 429) return "bad";
  return status >= 200 && status < 400 ? "ok" : "wrong";
}

const value = (fields, wanted) => fields.find(([name]) => name === wanted)?.[1];

function row(exchange) {
  const name = `${exchange.method} ${exchange.target}`;
  return make("tr", {},
    make("td", { class: "num" }, String(exchange.number)),
    make("td", { class: `num ${look(exchange)}` }, exchange.status === null ? "none" : String(exchange.status)),
    make("td", { class: "path" }, make("button", { type: "button", title: name, "data-focus": exchange.number, click: () => show(exchange) }, name)),
    make("td", {}, exchange.key ? nameOf(exchange.key) : "–"),
    make("td", { class: "num" }, value(exchange.replyHeaders, "x-ratelimit-remaining") ?? "–"),
    make("td", { class: "num" }, time.short(exchange.endedAt - exchange.at)),
    make("td", {}, make("time", {}, time.timeOfDay(exchange.at))),
    make("td", {}, exchange.faults.join(", ")),
    make("td", { class: "agent" }, value(exchange.headers, "user-agent") ?? "–"));
}

/** Opens the request with this number. */
export function open(number) {
  const exchange = exchanges.find((one) => one.number === number);
  if (exchange) show(exchange);
  else complain(new Error(`the journal no longer has request ${number}`));
}

function show(exchange) {
  const answer = exchange.answered ? `${exchange.status}` : `${exchange.status ?? "none"}, not delivered`;
  find("#exchange-title").textContent = `#${exchange.number} ${exchange.method} ${exchange.target} → ${answer}`;
  find("#exchange-body").replaceChildren(
    make("p", { class: "quiet" },
      `${time.instant(exchange.at)} · connection ${exchange.connection}, request ${exchange.nthOnConnection} on it · `,
      `${exchange.operation ?? "no operation"} · ${exchange.admission}`,
      exchange.faults.length > 0 ? ` · faults: ${exchange.faults.join(", ")}` : ""),
    copyButton(exchange),
    make("h4", {}, "Request"), fields(exchange.headers), body(exchange.body, exchange.bodyLength),
    make("h4", {}, "Response"), fields(exchange.replyHeaders), body(exchange.replyBody, exchange.replyBodyLength));
  find("#exchange").showModal();
}

const fields = (pairs) => make("pre", {}, pairs.map(([name, value]) => `${name}: ${value}`).join("\n"));

function body(text, length) {
  if (length === 0) return "";
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Cut short, or no JSON: as it came.
  }
  return make("pre", { "aria-label": `${length} bytes` }, shown);
}

/** Fills the choice of keys, and keeps what was chosen. */
export function offerKeys(keys) {
  const choice = find("#filter").elements.key;
  const chosen = choice.value;
  choice.replaceChildren(make("option", { value: "" }, "all"), ...keys.map(({ id, label }) => make("option", { value: id }, nameOf(label))));
  choice.value = keys.some(({ id }) => String(id) === chosen) ? chosen : "";
}

export function start() {
  // A phone shows the requests first.
  find("#filters").open = matchMedia("(min-width: 700px)").matches;
  for (const event of ["input", "change"]) find("#filter").addEventListener(event, render);
  find("#filter").addEventListener("submit", (event) => event.preventDefault());
  find("#base").textContent = `${location.origin}/v1`;
}
