/** The agent's question, and the answers that it offers. Pure. */

export interface Option {
  label: string;
  description: string;
}

/** A list; models also send it as JSON in a text, or one plain text. */
export function optionsIn(value: unknown): Option[] {
  const given = typeof value === "string" ? parsed(value) : value;
  const all: unknown[] = Array.isArray(given) ? given : [given];
  return all.map(asOption).filter(({ label }) => label);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Models give an option as its text, or as an object with a name for it. */
export function asOption(option: unknown): Option {
  if (typeof option !== "object" || option === null) return { label: asText(option), description: "" };
  const given = option as Record<string, unknown>;
  const first = (...names: string[]) =>
    asText(names.map((name) => given[name]).find((one) => one != null && typeof one !== "object"));
  const label = first("label", "title", "name", "text", "option", "value", "id");
  const description = first("description", "details", "detail", "explanation", "hint");
  return { label: label || description, description: label ? description : "" };
}

const asText = (value: unknown) => (typeof value === "string" ? value : value == null ? "" : String(value));

export interface Clarification {
  callId: string;
  question: string;
  context: string;
  kind: string;
  options: Option[];
  /** The person's answer; null if there is none yet. */
  answer: string | null;
}

interface Asked {
  id: string;
  name: string;
  status: string;
  args: Record<string, unknown>;
}

/** The last question that the agent asked in these calls. */
export function clarificationIn(calls: readonly Asked[], answer: string | null): Clarification | null {
  const call = calls.findLast((one) => one.name === "ask_clarification" && one.status === "done");
  if (!call) return null;
  const { question, context, clarification_type: kind, options } = call.args;
  return {
    callId: call.id,
    question: asText(question),
    context: asText(context),
    kind: asText(kind),
    options: optionsIn(options),
    answer,
  };
}
