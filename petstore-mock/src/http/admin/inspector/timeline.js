// The requests of one key in the last five minutes, drawn against the quota of the clock's minute.

import { draw, find, make } from "./dom.js";
import { nameOf, numberOf } from "./keys.js";
import { look } from "./requests.js";
import * as time from "./time.js";

const SPAN = 300;
const [HEIGHT, LEFT, BOTTOM, TOP] = [180, 40, 160, 14];

let keys = [];
let exchanges = [];
/** Until the reader chooses a key, it is one that is banned, or else the busiest. */
let chosen = "";

export function learnKeys(known) {
  keys = known;
  const choice = find("#timeline-key");
  choice.replaceChildren(...keys.map(({ id, label }) => make("option", { value: id }, nameOf(label))));
  render();
}

export function learnExchanges(known) {
  exchanges = known;
  render();
}

export function render() {
  const key = keys.find(({ id }) => String(id) === chosen) ?? keys.find(isBanned) ?? busiest();
  if (!key) return;
  find("#timeline-key").value = key.id;
  const now = time.now();
  const own = exchanges.filter((one) => numberOf(one.key) === key.id && one.at > now - SPAN - 60);
  const counted = count(own);
  const limit = key.minute.limit;
  // Far from the limit, what was used would be a flat line: then the line of the limit goes.
  const most = Math.max(1, ...counted.map(({ used }) => used));
  const scale = most * 4 > limit ? limit * 1.1 : most * 1.4;
  const chart = find("#chart");
  const width = Math.max(240, chart.clientWidth);
  chart.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const x = (at) => LEFT + ((at - now + SPAN) / SPAN) * (width - LEFT - 4);
  const y = (used) => BOTTOM - (used / scale) * (BOTTOM - TOP);
  chart.replaceChildren(
    ...axis(now, x, width),
    area(counted, now, x, y),
    ...(limit <= scale
      ? [draw("path", { class: "limit", d: `M${LEFT} ${y(limit)}H${width}` }), label(0, y(limit) + 4, limit)]
      : [label(0, y(most) + 4, most)]),
    ...counted.filter(({ at }) => at > now - SPAN).slice(-500).map(({ at, used, kind }) =>
      draw("circle", { class: kind, cx: x(at), cy: y(Math.min(used, scale)), r: 2.5 })));
  const refused = own.filter(({ status }) => status === 429).length;
  find("#chart-text").textContent =
    `${nameOf(key.label)}: ${own.length} requests in the last five minutes, ${refused} refused; ` +
    `at most ${counted.length === 0 ? 0 : most} of ${limit} in one minute.`;
}

const isBanned = ({ bannedUntil }) => bannedUntil > time.now();

function busiest() {
  const requests = ({ id }) => exchanges.filter(({ key }) => numberOf(key) === id).length;
  return keys.reduce((most, key) => (most && requests(most) >= requests(key) ? most : key), undefined);
}

/** Counts the requests that were let in, within each of the clock's minutes. */
function count(own) {
  let [minute, used] = [0, 0];
  return own.map((one) => {
    const its = Math.floor(one.at / 60);
    if (its !== minute) [minute, used] = [its, 0];
    if (one.admission === "admitted") used += 1;
    return { at: one.at, used, kind: look(one) };
  });
}

function area(counted, now, x, y) {
  let [path, minute] = [`M${x(now - SPAN)} ${BOTTOM}`, 0];
  for (const { at, used } of counted) {
    const its = Math.floor(at / 60);
    if (its !== minute && minute !== 0) path += `H${x((minute + 1) * 60)}V${BOTTOM}`;
    minute = its;
    if (at > now - SPAN) path += `H${x(at)}V${y(used)}`;
  }
  const end = Math.min((minute + 1) * 60, now);
  return draw("path", { class: "used", d: `${path}${minute === 0 ? "" : `H${x(end)}V${BOTTOM}`}H${x(now)}` });
}

function axis(now, x, width) {
  const lines = [draw("path", { class: "axis", d: `M${LEFT} ${BOTTOM}H${width}` })];
  for (let minute = Math.ceil((now - SPAN) / 60); minute * 60 <= now; minute += 1) {
    lines.push(
      draw("path", { class: "axis", d: `M${x(minute * 60)} ${TOP}V${BOTTOM}` }),
      label(x(minute * 60) - 14, HEIGHT - 6, time.timeOfDay(minute * 60).slice(0, 5)));
  }
  return lines;
}

const label = (x, y, text) => draw("text", { x, y }, String(text));

export const start = () =>
  find("#timeline-key").addEventListener("change", ({ target }) => {
    chosen = target.value;
    render();
  });
