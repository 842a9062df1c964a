// Real clients of Node: `node clients.mjs CLIENT METHOD URL`. Each does what its library does by
// itself, with the settings that are written here; whether the request succeeds is of no interest.
// The packages are looked for where the variable PETSTORE_TEST_MODULES says.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [client, method, url] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${process.env.PETSTORE_TEST_MODULES}/`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const headers = {
  Authorization: `Bearer ${process.env.PETSTORE_API_KEY}`,
  "User-Agent": `${client}/1`,
  ...(method === "POST" ? { "Content-Type": "application/json" } : {}),
};
const body = method === "POST" ? JSON.stringify({ name: "Rex", categoryId: 7 }) : undefined;

const clients = {
  "node-fetch": async () => () => fetch(url, { method, headers, body }),
  "fetch-loop": async () => async () => {
    for (let n = 0; n < 9; n += 1) {
      const response = await fetch(url, { method, headers, body });
      await response.arrayBuffer();
    }
  },
  "axios-loop": async () => {
    const { default: axios } = await load("axios");
    return async () => {
      for (let n = 0; n < 9; n += 1) {
        await axios({ url, method, headers, data: body, validateStatus: () => true });
      }
    };
  },
  ky: async () => {
    const { default: ky } = await load("ky");
    return () => ky(url, { method, headers, body });
  },
  "fetch-retry": async () => {
    const { default: wrap } = await load("fetch-retry");
    const options = { retries: 5, retryDelay: 1000, retryOn: [429, 500, 503] };
    return () => wrap(fetch)(url, { method, headers, body, ...options });
  },
  "p-retry": async () => {
    const { default: retry } = await load("p-retry");
    const send = async () => {
      const response = await fetch(url, { method, headers, body });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`status ${response.status}`);
    };
    return () => retry(send, { retries: 20, minTimeout: 1, maxTimeout: 1 });
  },
};

const send = await clients[client]();
try {
  const response = await send();
  await response?.arrayBuffer();
} catch (error) {
  console.log(error.name);
}
