// What the client under test did wrong, as the mock's report has it.

import { get } from "./api.js";
import { find, make } from "./dom.js";

const LOOK = { violation: "bad", warning: "wrong", notice: "" };

export async function refresh() {
  const report = await get("/report");
  const verdict = find("#verdict");
  const [text, look] = summary(report);
  verdict.textContent = text;
  verdict.className = `tag ${look}`;
  find("#no-finding").hidden = report.findings.length > 0;
  find("#findings").replaceChildren(...report.findings.map((finding) => card(finding, report.rules[finding.rule])));
}

/** The most severe of what was found, as a number. */
function summary({ violations, warnings }) {
  const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  if (violations > 0) return [counted(violations, "violation"), "bad"];
  if (warnings > 0) return [counted(warnings, "warning"), "wrong"];
  return ["compliant", "ok"];
}

function card(finding, about) {
  const { key, plan, userAgent } = finding.client;
  const keyText = plan === null ? key : `key ${key} (${plan})`;
  const client = `${keyText}, ${userAgent ?? "no User-Agent"}`;
  return make("li", {},
    make("div", { class: "top" },
      make("strong", {}, about.title),
      make("span", { class: `tag ${LOOK[finding.severity] ?? ""}` }, `${finding.severity} × ${finding.count}`)),
    make("details", {},
      make("summary", { class: "quiet" }, `${finding.scope}: ${client}`),
      make("p", { class: "quiet" }, `${about.reason} (${about.source}) ${about.advice}`),
      make("ul", {}, ...(finding.evidence ?? []).map(evidence))));
}

function evidence({ requests = [], text, told }) {
  const concerned = requests.filter(({ role }) => role === "cause" || role === "offence");
  const links = concerned.flatMap(({ number }) => [
    make("button", { type: "button", title: "Show the request", click: () => open(number) }, `#${number}`), " "]);
  return make("li", { class: "evidence" }, ...links, told ? `${text} (told: ${told})` : text);
}

/** Shows a request by its number. */
let open = () => {};

export const start = (openRequest) => (open = openRequest);
