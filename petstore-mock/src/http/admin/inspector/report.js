// What the client under test did wrong, as the mock's report has it.

import { get } from "./api.js";
import { find, make } from "./dom.js";

const LOOK = { violation: "bad", warning: "wrong", notice: "" };

export async function refresh() {
  const report = await get("/report");
  const verdict = find("#verdict");
  verdict.textContent = report.compliant ? "compliant" : "not compliant";
  verdict.className = `tag ${report.compliant ? "ok" : "bad"}`;
  find("#findings").replaceChildren(...report.findings.map((finding) => card(finding, report.rules[finding.rule])));
}

function card(finding, about) {
  const { key, plan, userAgent } = finding.client;
  const client = `key ${key}${plan === null ? "" : ` (${plan})`}, ${userAgent ?? "no User-Agent"}`;
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
  const numbers = concerned.map(({ number }) => `#${number}`).join(", ");
  const sentence = told === null ? text : `${text} (told: ${told})`;
  return make("li", {}, numbers === "" ? sentence : `${numbers}: ${sentence}`);
}
