// Each key's plan, senders and quotas, as gauges with the time to their reset, and bans with a countdown.

import { get, patch, post, put, remove } from "./api.js";
import { attempt, find, make, swap } from "./dom.js";
import * as time from "./time.js";

/** How long a ban from here is, in seconds. */
const BAN = 300;

let keys = [];
const watchers = [];

/** Calls back with the keys whenever they were read. */
export const watch = (watcher) => watchers.push(watcher);

export async function refresh() {
  keys = await get("/keys");
  swap(find("#key-list"), ...keys.map(card));
  tick();
  for (const watcher of watchers) watcher(keys);
}

/** Shows the time that is left, without new elements: a button must not vanish under the pointer. */
export function tick() {
  const now = time.now();
  for (const element of document.querySelectorAll("#key-list [data-until]")) {
    const left = Number(element.dataset.until) - now;
    element.textContent = left > 0 ? `${element.dataset.words} ${time.length(left)}` : element.dataset.over;
  }
}

function card(key) {
  const now = time.now();
  const banned = key.bannedUntil > now;
  const told = !banned && key.retryAfterUntil > now;
  const act = (name, text, action) => make("button", {
    type: "button", "aria-label": `${text} ${nameOf(key.label)}`, "data-focus": `${name}-${key.id}`, click: attempt(async () => {
      await action(`/keys/${key.id}`);
      await refresh();
    }),
  }, text);
  return make("li", { "data-key": key.id },
    make("div", { class: "top" },
      make("strong", {}, nameOf(key.label)),
      make("span", { class: "quiet" },
        ...[...partsOf(key.plan), senders(key)].flatMap((part) => [make("span", { class: "whole" }, part), " "]))),
    banned ? until("p", "bad", key.bannedUntil, "banned for", "not banned any more") : "",
    told ? until("p", "wrong", key.retryAfterUntil, "told to wait", "need not wait any more") : "",
    gauge("minute", key.minute),
    gauge("day", key.day),
    make("div", { class: "buttons" },
      banned
        ? act("ban", "Unban", (path) => remove(`${path}/ban`))
        : act("ban", "Ban", (path) => put(`${path}/ban`, { seconds: BAN })),
      act("plan", "Plan", (path) => ask(`The plan of ${nameOf(key.label)}`, key.plan, (plan) => patch(path, { plan }))),
      act("senders", "Senders", (path) => ask(`The most requests at once of ${nameOf(key.label)}`, key.senders,
        (text) => patch(path, { senders: Number(text) }))),
      act("reset", "Reset", (path) => post(`${path}/reset`)),
      act("remove", "Remove", async (path) => {
        if (confirm(`Remove ${nameOf(key.label)}? Its requests are answered 401 then.`)) await remove(path);
      })));
}

/** Asks for another value, and sets it if there is one. */
async function ask(question, value, set) {
  const given = prompt(question, value);
  if (given !== null) await set(given);
}

const senders = (key) => `${key.senders} sender${key.senders === 1 ? "" : "s"}`;

/** An element whose text counts down. */
function until(tag, look, end, words, over) {
  return make(tag, { class: look, "data-until": end, "data-words": words, "data-over": over });
}

function gauge(name, quota) {
  const text = `${quota.used.toLocaleString("en")} of ${quota.limit.toLocaleString("en")} this ${name}`;
  return make("div", { class: "gauge" },
    make("div", {},
      make("span", { class: "whole" }, text),
      until("span", "num", quota.reset, "resets in", "reset")),
    make("meter", {
      "aria-label": text, min: 0, max: quota.limit, value: quota.used,
      low: quota.limit * 0.7, high: quota.limit * 0.95, optimum: 0,
    }));
}

export function start() {
  find("#new-key").addEventListener("submit", attempt(async (event) => {
    const { plan, name } = Object.fromEntries(new FormData(event.target));
    const { key } = await post("/keys", { plan, ...(name === "" ? {} : { name }) });
    find("#new-key-text").textContent = `The new key is ${key}. It is shown only now.`;
    await refresh();
  }));
}

// The mock labels a key as `#1 free-key (free)`, or as `#2 (free)` if it has no name.
const LABEL = /^#(\d+) ?(.*) \(([^()]*)\)$/;

/** Returns the name of a key, or `key 2`. */
export function nameOf(label) {
  const [, number, name] = LABEL.exec(label) ?? [];
  if (number === undefined) return label;
  return name === "" || name.startsWith("…") ? `key ${number} ${name}`.trim() : name;
}

/** Returns the number of a key. Its label changes with its plan, its number never. */
export const numberOf = (label) => Number(LABEL.exec(label ?? "")?.[1]);

/** Writes a plan: `enterprise:9/99` is `enterprise 9/min 99/day`, each part without a break. */
export function partsOf(plan) {
  const [name, quotas] = plan.split(":");
  if (quotas === undefined) return [name];
  const [minute, day] = quotas.split("/").map((quota) => Number(quota).toLocaleString("en"));
  return [name, `${minute}/min`, `${day}/day`];
}
