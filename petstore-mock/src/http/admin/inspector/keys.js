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
    make("div", { class: "top" },
      make("strong", {}, nameOf(key.label)),
      make("span", { class: "quiet" }, ...partsOf(key.plan).flatMap((part) => [make("span", { class: "whole" }, part), " "]))),
    banned ? make("p", { class: "bad" }, `banned for ${time.length(key.bannedUntil - now)}`) : "",
    told ? make("p", { class: "wrong" }, `told to wait ${time.length(key.retryAfterUntil - now)}`) : "",
    gauge("minute", key.minute, now),
    key.hour ? gauge("hour", key.hour, now) : "",
    gauge("day", key.day, now));
}

function gauge(name, quota, now) {
  const left = quota.reset - now;
  const text = `${quota.used.toLocaleString("en")} of ${quota.limit.toLocaleString("en")} this ${name}`;
  return make("div", { class: "gauge" },
    make("div", {},
      make("span", { class: "whole" }, text),
      make("span", { class: "num" }, left > 0 ? `resets in ${time.length(left)}` : "reset")),
    make("meter", {
      "aria-label": text, min: 0, max: quota.limit, value: quota.used,
      low: quota.limit * 0.7, high: quota.limit * 0.95, optimum: 0,
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

/** Writes a plan: `enterprise:9/50/99` is `enterprise 9/min 50/hour 99/day`, each part without a break. */
export function partsOf(plan) {
  const [name, quotas] = plan.split(":");
  if (quotas === undefined) return [name];
  const limits = quotas.split("/").map((quota) => Number(quota).toLocaleString("en"));
  const periods = limits.length === 3 ? ["min", "hour", "day"] : ["min", "day"];
  return [name, ...limits.map((limit, place) => `${limit}/${periods[place]}`)];
}
