// The pets of the store, a page at a time, and adding and removing them. The columns are the fields that
// these pets have.

import { get, post, remove } from "./api.js";
import { attempt, find, make, swap } from "./dom.js";

const PAGE = 50;
let shown = PAGE;

export async function refresh() {
  const { pets, total } = await get(`/pets?limit=${shown}`);
  find("#pet-count").textContent = `${pets.length} of ${total}`;
  find("#more-pets").hidden = pets.length >= total;
  find("#clear-pets").disabled = total === 0;
  const fields = [...new Set(pets.flatMap(Object.keys))];
  find("#pet-fields").replaceChildren(
    ...fields.map((field) =>
      make("th", { scope: "col", class: alignment(pets.find((pet) => field in pet)[field]) }, field)),
    make("td", {}));
  swap(find("#pet-rows"), ...pets.map((pet) =>
    make("tr", {},
      ...fields.map((field) => make("td", { class: alignment(pet[field]) }, String(pet[field] ?? "–"))),
      make("td", {}, make("button", {
        type: "button", "aria-label": `Remove pet ${pet.id}`, "data-focus": pet.id, click: attempt(async () => {
          await remove(`/pets/${pet.id}`);
          await refresh();
        }),
      }, "Remove")))));
}

function alignment(value) {
  return typeof value === "number" ? "num" : undefined;
}

export function start() {
  find("#new-pet").addEventListener("submit", attempt(async (event) => {
    const pet = {};
    for (const { name, type, value } of event.target.elements) {
      if (name !== "" && value !== "") pet[name] = type === "number" ? Number(value) : value;
    }
    await post("/pets", pet);
    event.target.reset();
    await refresh();
  }));
  find("#clear-pets").addEventListener("click", attempt(async () => {
    if (!confirm("Remove all pets?")) return;
    await remove("/pets");
    await refresh();
  }));
  find("#more-pets").addEventListener("click", attempt(async () => {
    shown += PAGE;
    await refresh();
  }));
}
