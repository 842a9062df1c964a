// The clock: what it shows, and moving it.

import { get, post } from "./api.js";
import { attempt, find } from "./dom.js";
import * as time from "./time.js";

let frozen = false;

export async function refresh() {
  const clock = await get("/clock");
  time.learn(clock);
  frozen = clock.frozen;
  find("#pace").textContent = frozen ? "frozen" : "running";
  const freeze = find("#freeze");
  freeze.textContent = frozen ? "Resume" : "Freeze";
  freeze.setAttribute("aria-pressed", String(frozen));
  tick();
}

export function tick() {
  const shown = find("#now");
  shown.textContent = time.instant(time.now());
  shown.dateTime = new Date(time.now() * 1000).toISOString();
}

async function advance(seconds) {
  await post("/clock/advance", { seconds });
  await refresh();
}

export function start() {
  for (const button of document.querySelectorAll("[data-advance]")) {
    button.addEventListener("click", attempt(() => advance(Number(button.dataset.advance))));
  }
  find("#advance").addEventListener("submit", attempt((event) =>
    advance(Number(new FormData(event.target).get("seconds")))));
  find("#set-clock").addEventListener("submit", attempt(async (event) => {
    await post("/clock/set", { now: `${new FormData(event.target).get("now")}Z` });
    await refresh();
  }));
  find("#freeze").addEventListener("click", attempt(async () => {
    await post(frozen ? "/clock/resume" : "/clock/freeze");
    await refresh();
  }));
}
