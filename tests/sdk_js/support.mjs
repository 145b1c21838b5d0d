// What every file of the suite needs: the client, the scripted model, and a way to wait for something without sleeping blindly.
// DEERFLOW_URL: the gateway. DEERFLOW_TOKEN: an API token, if it asks for one. MODEL_URL: the scripted model endpoint.
import { randomUUID } from "node:crypto";
import { Client } from "@langchain/langgraph-sdk";

export const ASSISTANT = "lead_agent";
export const GUARD_MS = 60_000;

const apiUrl = process.env.DEERFLOW_URL;
const token = process.env.DEERFLOW_TOKEN;
if (!apiUrl || !process.env.MODEL_URL) throw new Error("Set DEERFLOW_URL and MODEL_URL.");

export function newClient(options = {}) {
  const defaultHeaders = token ? { authorization: `Bearer ${token}` } : {};
  return new Client({ apiUrl, apiKey: null, defaultHeaders, callerOptions: { maxRetries: 0 }, ...options });
}

export const client = newClient();

/** Queue answers of the model for one conversation; returns the text that its first message has to hold. */
export async function script(...replies) {
  const key = randomUUID();
  const response = await fetch(`${process.env.MODEL_URL}/script`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ replies, key }),
  });
  if (!response.ok) throw new Error(`The scripted model refused: ${await response.text()}`);
  return `key:${key}`;
}

export const say = (text) => ({ kind: "text", text });
export const call = (name, args, text = "") => ({ kind: "tool_calls", calls: [[name, args]], text });
/** An answer that takes long enough to be looked at, stopped, or steered. */
export const slowly = (text, between = 0.05) => ({ kind: "delay", seconds: 0, between, reply: say(text) });
export const look = () => call("ls", { description: "look", path: "/mnt/user-data" });

export const asks = (text) => ({ messages: [{ role: "user", content: text }] });

export async function newThread(options) {
  return (await client.threads.create(options)).thread_id;
}

export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

export async function until(what, condition) {
  const end = Date.now() + GUARD_MS;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`Waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Rejects with this HTTP status. */
export const status = (code) => (error) => error.status === code || String(error).includes(`${code}`);
