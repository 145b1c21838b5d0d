export const runs = {
  tree: "What the run did, in order",
  close: "Close the timeline",
  export: "Export",
  exportJson: "JSON",
  exportOtlp: "OpenTelemetry (OTLP/JSON)",
  total: "{n, plural, one {# step} other {# steps}}",
  tokens: "{input} tokens in, {output} out",
  cached: "{percent} from cache",
  forgotten: "The steps of this run are not kept any more.",
  truncated: "This run is very long. Only its first {n} steps are shown.",
  empty: "Nothing has happened yet.",
  notInChat: "That step isn’t part of the conversation you’re looking at.",
  show: "Show in chat",
  hint: "Select a step to see its details. Enter or a click shows it in the chat.",
  model: "Model",
  queue: "Waiting to start",
  attempt: "Resumed after a restart",
  retry: "Pause before asking again",
  decision: "Approval: {name}",
  summary: "Summarizing the conversation",
  why: {
    busy: "The model is overloaded",
    network: "Can’t reach the model",
    broken_off: "The answer broke off",
    other: "The model didn’t answer",
  },
  notice: {
    spending_limit: "Spending limit reached",
    acceptance_checks: "Acceptance checks",
    other: "Notice",
  },
  firstToken: "first token after {time}",
  cost: "cost {cost}",
  server: "MCP server {name}",
  exit: "exit code {code}",
  steps: "{n, plural, one {# step} other {# steps}} inside",
  status: {
    success: "done",
    error: "failed",
    running: "running",
    waiting: "waiting for you",
    approve: "allowed",
    edit: "changed and allowed",
    reject: "not allowed",
    respond: "replied for the tool",
    answered: "answered",
    deny: "refused by a guardrail",
    grant: "allowed by an earlier approval",
  },
};

declare module "@/i18n" {
  interface Messages {
    runs: typeof runs;
  }
}
