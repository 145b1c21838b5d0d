/** The one way to the gateway: JSON in and out, the CSRF header, one kind of error, and a notice when the session is over. */

export interface FieldError {
  field: string;
  message: string;
}

/** A refusal of the gateway. `status` 0 and `code` "unreachable": it did not answer at all. */
export class ApiError extends Error {
  readonly name = "ApiError";
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly fields: FieldError[] = [],
    /** Seconds, for 429. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

export interface RequestOptions {
  query?: Record<string, string | number | boolean | null | undefined>;
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** Sent to its end even when the page is left. */
  keepalive?: boolean;
}

/** Content of a refusal: the server's own sentence, and the data by which a page words it. */
export interface Refusal {
  detail: string;
  code?: string;
  reason?: string;
  values?: Record<string, string | number>;
}

/** Fallback for a response without a sentence of the server. */
let words = {
  unreachable: "The server cannot be reached.",
  answered: "The server answered {status}.",
};
let worded = async ({ detail }: Refusal) => detail;

/** In the language of the page. */
export function setWords(inLocale: typeof words, inWords: typeof worded) {
  words = inLocale;
  worded = inWords;
}

/** Nothing answered; 502 to 504 come from a proxy in front of a server that is not there. */
export const isUnreachable = (error: unknown) =>
  error instanceof ApiError && (error.status === 0 || (error.status >= 502 && error.status <= 504));

const unreachable = () => new ApiError(words.unreachable, 0, "unreachable");

const expired = new Set<() => void>();

/** Call `f` when a request is refused because the session has ended. Return a function that stops that. */
export function onSessionExpired(f: () => void): () => void {
  expired.add(f);
  return () => expired.delete(f);
}

export const csrfToken = () => /(?:^|;\s*)csrf_token=([^;]+)/.exec(document.cookie)?.[1] ?? "";

/** A request as it is; throws ApiError when the answer is not 2xx or 304. */
export async function request(
  method: string,
  path: string,
  init: RequestInit & RequestOptions = {},
): Promise<Response> {
  const { query, ...rest } = init;
  const headers = new Headers(init.headers);
  if (method !== "GET" && method !== "HEAD") headers.set("X-CSRF-Token", decodeURIComponent(csrfToken()));
  let answer: Response;
  try {
    answer = await fetch(withQuery(path, query), { ...rest, method, headers, credentials: "same-origin" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw unreachable();
  }
  if (answer.ok || answer.status === 304) return answer;
  throw announced(await errorOf(answer.status, await answer.text(), answer.headers.get("retry-after")), path);
}

async function json<T>(
  method: string,
  path: string,
  body?: unknown,
  options: RequestOptions = {},
): Promise<T> {
  const headers = {
    ...options.headers,
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
  };
  const answer = await request(method, path, {
    ...options,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (answer.status === 204) return undefined as T;
  const text = await answer.text();
  const value = parsed<T>(text);
  if (value === undefined) throw await errorOf(answer.status, text, null); // something between the server and us answered
  return value;
}

export const http = {
  get: <T>(path: string, options?: RequestOptions) => json<T>("GET", path, undefined, options),
  post: <T>(path: string, body?: unknown, options?: RequestOptions) => json<T>("POST", path, body, options),
  put: <T>(path: string, body?: unknown, options?: RequestOptions) => json<T>("PUT", path, body, options),
  patch: <T>(path: string, body?: unknown, options?: RequestOptions) => json<T>("PATCH", path, body, options),
  delete: <T>(path: string, options?: RequestOptions) => json<T>("DELETE", path, undefined, options),
};

export interface UploadOptions {
  /** Called with the part that has gone out, 0 to 1. */
  onProgress?: (fraction: number) => void;
  signal?: AbortSignal;
}

/** Sends a form; `fetch` cannot tell how far it is, so this is an XMLHttpRequest. */
export function upload<T>(
  path: string,
  form: FormData,
  { onProgress, signal }: UploadOptions = {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    const abort = () => sending.abort();
    sending.open("POST", path);
    sending.setRequestHeader("X-CSRF-Token", decodeURIComponent(csrfToken()));
    sending.upload.onprogress = (event) => onProgress?.(event.total ? event.loaded / event.total : 0);
    sending.onload = () => {
      const { status, responseText } = sending;
      const answer = status >= 200 && status < 300 ? parsed<T>(responseText) : undefined;
      if (answer !== undefined) return resolve(answer);
      const refused = errorOf(status, responseText, sending.getResponseHeader("retry-after"));
      void refused.then((error) => reject(announced(error, path)));
    };
    sending.onerror = () => reject(unreachable());
    sending.onabort = () => reject(new DOMException("The upload was cancelled.", "AbortError"));
    sending.onloadend = () => signal?.removeEventListener("abort", abort);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) return reject(new DOMException("The upload was cancelled.", "AbortError"));
    sending.send(form);
  });
}

interface ErrorBody extends Omit<Refusal, "detail"> {
  detail?: unknown;
  message?: unknown;
  errors?: FieldError[];
}

async function errorOf(status: number, text: string, retryAfter: string | null): Promise<ApiError> {
  const seconds = retryAfter === null ? null : Number(retryAfter) || null;
  const { detail, message, errors, ...cause } = parsed<ErrorBody>(text) ?? {};
  const sentence = [detail, message].find((one) => typeof one === "string");
  const said =
    sentence === undefined
      ? words.answered.replace("{status}", String(status))
      : await worded({ ...cause, detail: sentence }).catch(() => sentence);
  return new ApiError(said, status, cause.code ?? "error", errors, seconds);
}

/** undefined: it is no JSON. */
function parsed<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

/** Sign-in itself reports a wrong password; for every other request 401 means that the session is over. */
function announced(error: ApiError, path: string): ApiError {
  if (error.status === 401 && !path.startsWith("/api/v1/auth/login")) {
    error.message = ""; // the page asks to sign in again; nothing else need say it
    expired.forEach((f) => f());
  }
  return error;
}

function withQuery(path: string, query: RequestOptions["query"]): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== null && value !== undefined);
  return given.length
    ? `${path}?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}`
    : path;
}
