// The pets of the store, a page at a time.

import { get } from "./api.js";
import { attempt, find, make } from "./dom.js";

const PAGE = 50;
let shown = PAGE;

export async function refresh() {
  const { pets, total } = await get(`/pets?limit=${shown}`);
  find("#pet-count").textContent = `${pets.length} of ${total}`;
  find("#more-pets").hidden = pets.length >= total;
  find("#pet-rows").replaceChildren(...pets.map(({ id, name, categoryId, status }) =>
    make("tr", {},
      make("td", { class: "num" }, String(id)),
      make("td", { class: "path" }, name),
      make("td", { class: "num" }, String(categoryId)),
      make("td", {}, status ?? "–"))));
}

export function start() {
  find("#more-pets").addEventListener("click", attempt(async () => {
    shown += PAGE;
    await refresh();
  }));
}
