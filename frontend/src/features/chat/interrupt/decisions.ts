/** A person's decisions about calls that wait, in the shape of LangChain's human-in-the-loop middleware. Pure. */
import type { Interrupt } from "../thread/session";

export type Grant = WaitingCall["grants"][number];
export type WaitingCall = Interrupt["calls"][number];
export type Choice = WaitingCall["allowed"][number];

/** Globs by argument; null stands for any value. */
export type Pattern = Record<string, string | null>;

export type Decision =
  | { type: "approve"; grant?: Grant; pattern?: Pattern }
  | { type: "edit"; edited_action: { name: string; args: Record<string, unknown> } }
  | { type: "reject"; message?: string }
  | { type: "respond"; message: string };

export const approve: Decision = { type: "approve" };

/** This call, and those of the same tool after it; with a pattern only those whose arguments are like it. */
export const grant = (grant: Grant, pattern: Pattern = {}): Decision => ({
  type: "approve",
  grant,
  ...(Object.keys(pattern).length ? { pattern } : {}),
});

/** The pattern of calls like this one: it names each argument that says something of what the call does. */
export const patternOf = (call: WaitingCall, cosmetic: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(call.args)
      .filter(([name]) => !cosmetic.includes(name))
      .map(([name, value]) => [name, patternText(value)]),
  );

/** Without a note the server reports a plain rejection to the agent. */
export const reject = (note: string): Decision =>
  note.trim() ? { type: "reject", message: note.trim() } : { type: "reject" };

export const respond = (answer: string): Decision => ({ type: "respond", message: answer.trim() });

export const edit = (call: WaitingCall, args: Record<string, unknown>): Decision => ({
  type: "edit",
  edited_action: { name: call.name, args },
});

/** The answer to an interrupt: one decision for each call, in their order. Null while one is missing. */
export function answerOf(decisions: readonly (Decision | null)[]): { decisions: Decision[] } | null {
  const made = decisions.filter((one) => one !== null);
  return made.length === decisions.length ? { decisions: made } : null;
}

export interface Field {
  name: string;
  kind: "line" | "text" | "number" | "flag" | "json";
}

/** Form fields of the arguments. */
export function fieldsOf(args: Record<string, unknown>): Field[] {
  return Object.entries(args).map(([name, value]) => ({ name, kind: kindOf(name, value) }));
}

function kindOf(name: string, value: unknown): Field["kind"] {
  if (typeof value === "string")
    return name === "command" || value.length > 60 || value.includes("\n") ? "text" : "line";
  if (typeof value === "number") return "number";
  return typeof value === "boolean" ? "flag" : "json";
}

export type Problem =
  { kind: "badJson"; message: string } | { kind: "notObject" } | { kind: "notNumber"; field: string };

/** Arguments out of a text. */
export function parseArgs(text: string): { args: Record<string, unknown> } | { problem: Problem } {
  const read = parse(text);
  if ("problem" in read) return read;
  const { value } = read;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { problem: { kind: "notObject" } };
  return { args: value as Record<string, unknown> };
}

/** The value of a field as it was typed. */
export function parseField(field: Field, text: string): { value: unknown } | { problem: Problem } {
  if (field.kind === "json") return parse(text);
  if (field.kind !== "number") return { value: text };
  const number = Number(text);
  if (text.trim() === "" || Number.isNaN(number))
    return { problem: { kind: "notNumber", field: field.name } };
  return { value: number };
}

function parse(text: string): { value: unknown } | { problem: Problem } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: { kind: "badJson", message: error instanceof Error ? error.message : String(error) } };
  }
}

/** Reasons that the headline and what stands below it tell. */
const WORDED = new Set(["deerflow.ask", "deerflow.outward"]);

/** The agent's reason for the call and the reason of the server's rule, without those that the card words itself. */
export function reasonsOf(call: WaitingCall, cosmetic: readonly string[]): { own: string; rule: string } {
  const text = call.description.trim();
  const said = cosmetic.includes("description") ? call.args["description"] : "";
  const generic = /^Tool execution (requires approval|pending)/i.test(text) || text.includes("\nArgs:");
  const worded = generic || WORDED.has(call.reason);
  return { own: typeof said === "string" ? said : "", rule: worded ? "" : text };
}

/** A value as the server compares it with a pattern: text as it is, anything else as Python writes JSON. */
export function patternText(value: unknown): string {
  return typeof value === "string" ? value : json(value);
}

function json(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(json).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${json(one)}`);
  return `{${entries.join(", ")}}`;
}
