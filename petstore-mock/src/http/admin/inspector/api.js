// The mock's administration as functions. The token, where one is needed, is kept for this tab only.

const TOKEN = "petstore-mock-token";

export const setToken = (token) => sessionStorage.setItem(TOKEN, token);

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function send(method, path, { body, accept = "application/json", signal } = {}) {
  const headers = { accept };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const answer = await fetch(`/_mock${path}`, {
    method, headers, signal, cache: "no-store", body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text.slice(0, 300) || `the mock answered ${answer.status}`;
  try {
    message = JSON.parse(text).message ?? message;
  } catch {
    // Not the Error shape: the text itself has to do.
  }
  throw new ApiError(answer.status, message);
}

const parsed = async (answer) => {
  const text = await answer.text();
  return text === "" ? undefined : JSON.parse(text);
};

export const get = async (path) => parsed(await send("GET", path));
export const post = async (path, body = {}) => parsed(await send("POST", path, { body }));
export const patch = async (path, body) => parsed(await send("PATCH", path, { body }));
export const put = async (path, body) => parsed(await send("PUT", path, { body }));
export const remove = async (path) => parsed(await send("DELETE", path));

/**
 * Reads server-sent events until the connection ends. `EventSource` would do, but cannot send a token.
 */
export async function listen(path, { opened, event, signal }) {
  const answer = await send("GET", path, { accept: "text/event-stream", signal });
  opened();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = { event: "message", data: "" };
      for (const line of block.split(/\r?\n/)) {
        const [, name, text] = /^(\w+): ?(.*)$/.exec(line) ?? [];
        if (name === "data") fields.data += text;
        else if (name) fields[name] = text;
      }
      if (fields.data !== "") event(fields.event, JSON.parse(fields.data));
    }
  }
}
