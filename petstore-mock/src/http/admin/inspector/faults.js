// Faults: those that are set, with their hits, and setting and clearing them.

import { get, post, remove } from "./api.js";
import { attempt, find, make, swap } from "./dom.js";

/** What can be set from here: each kind of effect, made out of one number or text. */
const KINDS = {
  "status": { hint: "503", effect: (value) => ({ status: Number(value || 503) }) },
  "delay, seconds": { hint: "2", effect: (value) => ({ delay: { seconds: Number(value || 2) } }) },
  "reset": { effect: () => ({ reset: {} }) },
  "empty reply": { effect: () => ({ emptyReply: {} }) },
  "cut after bytes": { hint: "10", effect: (value) => ({ cut: { afterBodyBytes: Number(value || 10) } }) },
  "hang": { effect: () => ({ hang: {} }) },
  "trickle, bytes a second": { hint: "10", effect: (value) => ({ trickle: { bytes: Number(value || 10), everySeconds: 1 } }) },
  "malformed JSON": { effect: () => ({ body: { text: "{" } }) },
  "content type": { hint: "text/html", effect: (value) => ({ setHeader: { name: "content-type", value: value || "text/html" } }) },
  "no rate headers": { effect: () => ({ rateHeaders: "missing" }) },
  "garbage rate headers": { effect: () => ({ rateHeaders: "garbage" }) },
  "Date": { hint: "Thu, 01 Jan 1970 00:00:00 GMT", effect: (value) => ({ setHeader: { name: "date", value: value || "Thu, 01 Jan 1970 00:00:00 GMT" } }) },
  "Retry-After, seconds": { hint: "30", effect: (value) => ({ retryAfter: { seconds: Number(value || 30) } }) },
};

export async function refresh() {
  const faults = await get("/faults");
  swap(find("#fault-list"), ...faults.map(card));
  find("#clear-faults").disabled = faults.length === 0;
}

function card(fault) {
  const { id, hits, seen, matched, name, effect, sequence, ...rest } = fault;
  if (rest.when === "always") delete rest.when;
  if (rest.seed === 0) delete rest.seed;
  return make("li", {},
    make("div", { class: "top" },
      make("strong", {}, name ?? (sequence ?? [effect]).map(named).join(", ")),
      make("span", { class: `tag ${hits > 0 ? "ok" : ""}` }, `hit ${hits} time${hits === 1 ? "" : "s"}`),
      make("button", { type: "button", "data-focus": id, "aria-label": `Clear fault ${id}`, click: attempt(async () => {
        await remove(`/faults/${id}`);
        await refresh();
      }) }, "Clear")),
    make("code", {}, JSON.stringify({ ...rest, effect, sequence })));
}

/** The kinds of an effect as the journal names them, such as `status + retryAfter`. */
const named = (effect) => effect.all ? effect.all.map(named).join(" + ") : Object.keys(effect)[0];

export function start() {
  const form = find("#fault");
  const { kind, value } = form.elements;
  kind.replaceChildren(...Object.keys(KINDS).map((name) => make("option", {}, name)));
  const suggest = () => {
    value.placeholder = KINDS[kind.value].hint ?? "";
    value.disabled = KINDS[kind.value].hint === undefined;
  };
  kind.addEventListener("change", suggest);
  suggest();
  form.addEventListener("submit", attempt(async () => {
    const { operation, first } = Object.fromEntries(new FormData(form));
    await post("/faults", {
      effect: KINDS[kind.value].effect(value.value),
      ...(operation === "" ? {} : { operation }),
      ...(first === "" ? {} : { when: { first: Number(first) } }),
    });
    await refresh();
  }));
  find("#clear-faults").addEventListener("click", attempt(async () => {
    await remove("/faults");
    await refresh();
  }));
}
