// Requests to the gateway: JSON in, JSON out, errors as sentences.

export class ApiError extends Error {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const csrf = () => document.cookie.match(/(?:^|; )csrf_token=([^;]*)/)?.[1];

export async function send(method, path, body, { signal, headers = {} } = {}) {
  const all = { ...headers };
  const token = csrf();
  if (token && method !== "GET") all["X-CSRF-Token"] = decodeURIComponent(token);
  if (body && !(body instanceof FormData) && !(body instanceof URLSearchParams)) {
    all["Content-Type"] = "application/json";
    body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, { method, body, headers: all, signal, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached. Is it still running?", 0, "unreachable");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  const detail = typeof told.detail === "string" ? told.detail : told.detail?.message;
  throw new ApiError(detail || `The server answered ${answer.status}.`, answer.status, told.code);
}

export const get = async (path) => (await send("GET", path)).json();
export const post = async (path, body = {}) => (await send("POST", path, body)).json();

// The events of a response, as [event, data, id]; see the HTML standard, "server-sent events".
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = {};
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (event.data !== undefined) yield [event.event ?? "message", JSON.parse(event.data || "null"), event.id];
          event = {};
        } else if (!line.startsWith(":")) {
          const [, name, text] = line.match(/^([^:]*):? ?(.*)$/s);
          event[name] = name === "data" && event.data !== undefined ? `${event.data}\n${text}` : text;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
