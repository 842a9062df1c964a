// Each key's quotas as gauges with the time to their reset, and bans with a countdown.

import { get } from "./api.js";
import { find, make } from "./dom.js";
import * as time from "./time.js";

let keys = [];
const watchers = [];

/** Calls back with the keys whenever they were read. */
export const watch = (watcher) => watchers.push(watcher);

export async function refresh() {
  keys = await get("/keys");
  tick();
  for (const watcher of watchers) watcher(keys);
}

export function tick() {
  const list = find("#key-list");
  list.replaceChildren(...keys.map(card));
}

function card(key) {
  const now = time.now();
  const banned = key.bannedUntil > now;
  const told = !banned && key.retryAfterUntil > now;
  return make("li", { "data-key": key.id },
    make("strong", {}, key.label),
    banned ? make("p", { class: "bad" }, `banned for ${time.length(key.bannedUntil - now)}`) : "",
    told ? make("p", { class: "wrong" }, `told to wait ${time.length(key.retryAfterUntil - now)}`) : "",
    gauge("minute", key.minute, now),
    gauge("day", key.day, now));
}

function gauge(name, quota, now) {
  const left = quota.reset - now;
  const text = `${quota.used.toLocaleString("en")} of ${quota.limit.toLocaleString("en")} this ${name}`;
  return make("div", { class: "gauge" },
    make("div", {},
      make("span", {}, text),
      make("span", { class: "num" }, left > 0 ? `resets in ${time.length(left)}` : "reset")),
    make("meter", {
      "aria-label": text, min: 0, max: quota.limit, value: quota.used,
      low: quota.limit * 0.7, high: quota.limit * 0.95, optimum: 0,
    }));
}
