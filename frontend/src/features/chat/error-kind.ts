/** Why a run failed, by the server's name for it or, failing that, by its words. Keys of the texts `chat.error`. */
type ErrorKind =
  | "busy"
  | "circuit_open"
  | "transient"
  | "network"
  | "quota"
  | "auth"
  | "model_not_found"
  | "context_length"
  | "too_large"
  | "content_filter"
  | "empty_answer"
  | "broken_off"
  | "timeout"
  | "recursion"
  | "generic";

const NAMES: Record<string, ErrorKind> = {
  busy: "busy",
  circuit_open: "circuit_open",
  transient: "transient",
  network: "network",
  quota: "quota",
  auth: "auth",
  model_not_found: "model_not_found",
  context_length: "context_length",
  too_large: "too_large",
  content_filter: "content_filter",
  empty_answer: "empty_answer",
  broken_off: "broken_off",
  timeout: "timeout",
  graphrecursionerror: "recursion",
};

const WORDS: [RegExp, ErrorKind][] = [
  [/recursion_limit|recursion limit/i, "recursion"],
  [/rejected the API key|invalid api key|unauthori[sz]ed/i, "auth"],
  [/no quota or credit/i, "quota"],
  [/too long for|context (length|window)/i, "context_length"],
  [/does not know the model/i, "model_not_found"],
  [/could not be reached|no connection/i, "network"],
  [/rate.?limit|too many requests|overloaded/i, "busy"],
  [/temporarily unavailable/i, "transient"],
  [/timed? ?out|timeout_seconds/i, "timeout"],
];

export function errorKind({ name, message }: { name: string; message: string }): ErrorKind {
  return NAMES[name.toLowerCase()] ?? WORDS.find(([words]) => words.test(message))?.[1] ?? "generic";
}
