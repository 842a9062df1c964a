// "Copy as curl": a request as a command. The key is a variable of the shell, as the mock never shows keys.

import { make } from "./dom.js";

/** What curl sets by itself, or what belongs to the connection. */
const LEFT_OUT = ["host", "content-length", "connection", "transfer-encoding", "accept-encoding", "authorization", "expect"];

/** Quotes a word for a shell. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl(exchange) {
  const words = ["curl"];
  if (location.protocol === "https:") words.push("--insecure");
  if (exchange.method === "HEAD") words.push("--head");
  else if (exchange.method !== "GET") words.push("-X", quoted(exchange.method));
  if (exchange.headers.some(([name]) => name === "authorization")) {
    words.push("-H", '"Authorization: Bearer $PETSTORE_API_KEY"');
  }
  for (const [name, value] of exchange.headers) {
    if (!LEFT_OUT.includes(name)) words.push("-H", quoted(`${name}: ${value}`));
  }
  if (exchange.bodyLength > 0) words.push("--data-raw", quoted(exchange.body));
  words.push(quoted(`${location.origin}${exchange.target}`));
  return words.join(" ");
}

/** A button that copies the command, and shows it where the browser does not let it. */
export function copyButton(exchange) {
  const text = curl(exchange);
  const shown = make("pre", { id: "curl", hidden: true }, text);
  const button = make("button", { type: "button", id: "copy-curl", click: async () => {
    shown.hidden = false;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(shown);
      button.textContent = "Copy the selected text";
    }
  } }, "Copy as curl");
  return make("div", {}, button, shown);
}
