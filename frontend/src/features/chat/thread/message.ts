/** A message of a thread, whatever library it came from, and its parts. */

export interface FileRef {
  filename: string;
  size?: number;
  /** Path that the agent uses: /mnt/user-data/uploads/… */
  path?: string;
}

/** Memory about the person that was given to the model with their message. */
export interface Recalled {
  text: string;
}

export type ToolStatus = "writing" | "running" | "waiting" | "done" | "error" | "stopped";

export interface ToolCall {
  id: string;
  name: string;
  args: Record<string, unknown>;
  status: ToolStatus;
  /** Reason for a missing result of the tool. */
  cause?: { code: string; detail: string };
  /** Of the person: they changed `args`, or answered, and the call was not made. */
  decision?: "edit" | "respond";
  result: string;
  /** Addresses of pictures in the result. */
  images: string[];
  /** Output so far, while it runs. */
  output: string;
}

export interface TokenUsage {
  input: number;
  output: number;
  total: number;
  /** In dollars; null if the model has no price. */
  cost: number | null;
}

/**
 * `now`: being sent; `offline`: waits until the server is reachable; `accepted`: its run has not started. false:
 * in the thread.
 */
export type Sending = false | "now" | "offline" | "accepted";

export interface Message {
  id: string;
  type: "human" | "ai" | "tool";
  text: string;
  thinking: string;
  calls: { id: string; name: string; args: Record<string, unknown> }[];
  /** Of a result: the call it answers. */
  callId: string | null;
  failed: boolean;
  cause?: ToolCall["cause"];
  decision?: { type: "edit" | "respond"; args?: ToolCall["args"]; message?: string };
  images: string[];
  files: FileRef[];
  usage: Omit<TokenUsage, "cost"> | null;
  runId: string | null;
  sending: Sending;
  recalled: Recalled | null;
  /** An answer that broke off, behind which the model was asked again. */
  brokeOff?: boolean;
}
