// The pets of the store, a page at a time. The columns are the fields that these pets have.

import { get } from "./api.js";
import { attempt, find, make } from "./dom.js";

const PAGE = 50;
let shown = PAGE;

export async function refresh() {
  const { pets, total } = await get(`/pets?limit=${shown}`);
  find("#pet-count").textContent = `${pets.length} of ${total}`;
  find("#more-pets").hidden = pets.length >= total;
  const fields = [...new Set(pets.flatMap(Object.keys))];
  find("#pet-fields").replaceChildren(...fields.map((field) =>
    make("th", { scope: "col", class: alignment(pets.find((pet) => field in pet)[field]) }, field)));
  find("#pet-rows").replaceChildren(...pets.map((pet) =>
    make("tr", {}, ...fields.map((field) =>
      make("td", { class: alignment(pet[field]) }, String(pet[field] ?? "–"))))));
}

function alignment(value) {
  return typeof value === "number" ? "num" : undefined;
}

export function start() {
  find("#more-pets").addEventListener("click", attempt(async () => {
    shown += PAGE;
    await refresh();
  }));
}
