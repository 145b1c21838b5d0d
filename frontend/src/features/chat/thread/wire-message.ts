/** Messages as the gateway sends them, and what of them is shown. */
import type { FileRef, Recalled, Message } from "./message";

export interface WireMessage {
  id?: string | null;
  type: string;
  content: string | ContentBlock[];
  name?: string | null;
  tool_call_id?: string;
  status?: string;
  tool_calls?: { id?: string | null; name: string; args: Record<string, unknown> }[];
  usage_metadata?: { input_tokens: number; output_tokens: number; total_tokens: number } | null;
  additional_kwargs?: Record<string, unknown>;
}

interface ContentBlock {
  type: string;
  text?: string;
  reasoning?: string;
  thinking?: string;
  image_url?: { url?: string } | string;
}

/** null for what people do not see: system messages, and those that are marked as hidden. */
export function said(message: WireMessage): Message | null {
  const kwargs = message.additional_kwargs ?? {};
  if (!isShown(message.type) || kwargs.hide_from_ui) return null;
  const blocks = typeof message.content === "string" ? [] : message.content;
  const inline = splitThinking(typeof message.content === "string" ? message.content : textOf(blocks));
  const usage = message.usage_metadata;
  return {
    id: message.id ?? "",
    type: message.type,
    text: inline.text,
    thinking: [asText(kwargs.reasoning_content), thinkingOf(blocks), inline.thinking].find(Boolean) ?? "",
    calls: (message.tool_calls ?? []).map(({ id, name, args }) => ({ id: id ?? "", ...called(name, args) })),
    callId: message.tool_call_id ?? null,
    failed: message.status === "error",
    images: imagesOf(blocks),
    files: filesOf(kwargs.files),
    usage: usage
      ? { input: usage.input_tokens, output: usage.output_tokens, total: usage.total_tokens }
      : null,
    runId: asText(kwargs.run_id) || null,
    sending: false,
    recalled: (kwargs.facts as { memory?: Recalled } | undefined)?.memory ?? null,
    ...(kwargs.cause ? { cause: kwargs.cause as Message["cause"] } : {}),
    ...(kwargs.decision ? { decision: kwargs.decision as Message["decision"] } : {}),
    ...(kwargs.broke_off === true && { brokeOff: true }),
  };
}

/** The tool that is called: `call_tool` names it. */
function called(name: string, args: Record<string, unknown>) {
  if (name !== "call_tool" || typeof args.name !== "string") return { name, args };
  const inner = args.arguments;
  const isObject = typeof inner === "object" && inner !== null && !Array.isArray(inner);
  return { name: args.name, args: isObject ? (inner as Record<string, unknown>) : {} };
}

const isShown = (type: string): type is Message["type"] =>
  type === "human" || type === "ai" || type === "tool";
const asText = (value: unknown) => (typeof value === "string" ? value : "");
const textOf = (blocks: ContentBlock[]) =>
  blocks.map((block) => (block.type === "text" ? (block.text ?? "") : "")).join("");
const thinkingOf = (blocks: ContentBlock[]) =>
  blocks.map((block) => block.reasoning ?? block.thinking ?? "").join("");

function imagesOf(blocks: ContentBlock[]): string[] {
  return blocks.flatMap(({ type, image_url: image }) => {
    const url = type === "image_url" ? (typeof image === "string" ? image : image?.url) : undefined;
    return url?.startsWith("data:image/") ? [url] : []; // nothing is loaded from elsewhere
  });
}

function filesOf(files: unknown): FileRef[] {
  if (!Array.isArray(files)) return [];
  return files.flatMap((file: unknown) => {
    if (typeof file !== "object" || !file || !("filename" in file)) return [];
    const { filename, size, path } = file as Record<string, unknown>;
    return [
      {
        filename: asText(filename),
        ...(typeof size === "number" ? { size } : {}),
        ...(typeof path === "string" ? { path } : {}),
      },
    ];
  });
}

/** Some models write their thoughts into the answer, between tags. */
function splitThinking(text: string): { text: string; thinking: string } {
  const found = /^\s*<think>([\s\S]*?)(?:<\/think>|$)/.exec(text);
  return found
    ? { text: text.slice(found[0].length).trimStart(), thinking: found[1]?.trim() ?? "" }
    : { text, thinking: "" };
}
