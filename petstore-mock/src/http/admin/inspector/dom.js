// Building elements. Text enters the page only through here, as text: nothing that a client sent can
// become markup.

export const find = (selector) => document.querySelector(selector);

/** Makes an element: `make("li", { class: "top" }, "text", child)`. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** Makes an SVG element. */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
}

/** Replaces the children of an element. What has the focus in it keeps it, by its `data-focus`. */
export function swap(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.focus ?? "" : undefined;
  parent.replaceChildren(...children);
  if (focused === undefined) return;
  const same = parent.querySelector(`[data-focus="${CSS.escape(focused)}"]`);
  (same ?? parent.closest("section"))?.focus();
}

let hiding;

/** Tells the reader that something went wrong, for a while. */
export function complain(error) {
  const message = find("#message");
  message.textContent = error.message ?? String(error);
  clearTimeout(hiding);
  hiding = setTimeout(() => (message.textContent = ""), 8000);
}

/** Runs an action of the reader's, and tells what went wrong with it. */
export const attempt = (action) => async (event) => {
  event?.preventDefault();
  try {
    await action(event);
  } catch (error) {
    complain(error);
  }
};
