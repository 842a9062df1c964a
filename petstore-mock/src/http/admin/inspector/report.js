// What the client under test did wrong, as the mock's report has it.

import { get } from "./api.js";
import { find, make, swap } from "./dom.js";

const LOOK = { violation: "bad", warning: "wrong", notice: "" };

export async function refresh() {
  const report = await get("/report");
  const verdict = find("#verdict");
  verdict.textContent = report.summary.replace("compliance: ", "");
  verdict.className = `tag ${look(report)}`;
  find("#no-finding").hidden = report.findings.length > 0;
  // What the reader has opened stays open.
  const opened = [...document.querySelectorAll("#findings details[open] summary")].map(({ dataset }) => dataset.focus);
  swap(find("#findings"), ...report.findings.map((finding) => card(finding, opened)));
}

/** The look of the most severe finding. Without one, it is only good if every request was answered well. */
function look({ violations, warnings, answered429, answered5xx, withoutResponse, unknownOperation, withoutKey }) {
  if (violations > 0) return "bad";
  if (warnings > 0) return "wrong";
  return answered429 + answered5xx + withoutResponse + unknownOperation + withoutKey > 0 ? "" : "ok";
}

function card(finding, opened) {
  const { rule, key, plan, severity, text, requests, advice, remedy } = finding;
  const id = `${rule} ${key} ${requests[0]?.number}`;
  const links = requests.flatMap(({ number }) => [
    make("button", {
      type: "button", title: "Show the request", "data-focus": `${id} ${number}`, click: () => open(number),
    }, `#${number}`), " "]);
  return make("li", {},
    make("div", { class: "top" },
      make("strong", {}, rule),
      make("span", { class: `tag ${LOOK[severity] ?? ""}` }, severity)),
    make("details", { open: opened.includes(id) },
      make("summary", { class: "quiet", "data-focus": id }, plan === null ? key : `key ${key} (${plan})`),
      make("p", {}, text),
      make("p", { class: "quiet" }, advice),
      make("p", { class: "quiet" }, remedy ?? ""),
      make("p", { class: "evidence" }, ...links)));
}

/** Shows a request by its number. */
let open = () => {};

export const start = (openRequest) => (open = openRequest);
