// What the client under test did wrong, as the mock's report has it.

import { get } from "./api.js";
import { find, make } from "./dom.js";

const LOOK = { violation: "bad", warning: "wrong", notice: "" };

export async function refresh() {
  const report = await get("/report");
  const verdict = find("#verdict");
  verdict.textContent = report.compliant ? "compliant" : "not compliant";
  verdict.className = `tag ${report.compliant ? "ok" : "bad"}`;
  find("#findings").replaceChildren(...report.findings.map(card));
}

function card(finding) {
  return make("li", {},
    make("div", { class: "top" },
      make("strong", {}, finding.title),
      make("span", { class: `tag ${LOOK[finding.severity] ?? ""}` }, `${finding.severity} × ${finding.count}`)),
    make("details", {},
      make("summary", { class: "quiet" }, "why, and which requests"),
      make("p", { class: "quiet" }, finding.paragraph ?? ""),
      make("ul", {}, ...(finding.evidence ?? []).map(evidence))));
}

function evidence({ requests = [], text }) {
  const numbers = requests.map((number) => `#${number}`).join(", ");
  return make("li", {}, numbers === "" ? text : `${numbers}: ${text}`);
}
