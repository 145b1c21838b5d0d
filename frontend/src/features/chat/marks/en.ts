/** Parts of a conversation that open on demand. */
export const details = {
  context: {
    title: "What the model reads",
    of: "{used} of {limit} tokens · {model}",
    counting: "Counting…",
    system: "Instructions",
    tools: "Tools",
    messages: "Messages",
    tool_results: "Tool results",
    summary: "Summary",
    free: "Free",
    compact: "Compact",
    compactText: "The model reads a summary instead of this chat so far. You keep every message.",
    threadCost: "This chat so far",
    keep: "What matters most (optional)",
    keepHint: "for example: the figures and their sources",
  },
  summary: {
    title: "Summarized for the model",
    sizes: "{before} → {after} tokens",
    explained:
      "From here on, the model reads this instead of the older messages above. You keep all of them.",
    shown: "Show",
    text: "Summary",
    replaced: "What it stands for",
    kept: "kept word for word",
    you: "You",
    agent: "DeerFlow",
    steps: "{n, plural, one {# step} other {# steps}}",
  },
  receipts: {
    state: {
      verified: "DeerFlow checked what this answer rests on, and it holds.",
      observed: "A tool call saw what this answer rests on. It wasn’t checked again.",
      claimed: "Not everything this answer rests on is backed by what was done. The rest is unverified.",
      contradicted: "DeerFlow checked, and something this answer rests on doesn’t hold.",
      none: "This answer claims nothing that could be checked. This is what was done.",
    },
    word: {
      verified: "verified",
      observed: "observed",
      claimed: "claimed",
      contradicted: "contradicted",
    },
    refused: "Refused calls",
    claims: "What the answer claims",
    testsPass: "The tests pass",
    checks: "Checks you asked for",
    openTodos: "Left open in the plan",
    commands: "Commands",
    files: "Files",
    sources: "Sources",
    exitCode: "exit code {code}",
    good: "OK",
    bad: "Not OK",
  },
  memory: {
    title: "Remembered",
    used: "What DeerFlow remembered for this message",
    earlier: "Given earlier in this chat",
    summaries: "About you",
    facts: "Facts",
    manage: "Manage memory",
    active: "Memory in this chat",
    activeText: "Off: nothing is remembered from this chat, and nothing remembered is used in it.",
    paused: "Memory is paused in this chat",
  },
  temporary: {
    name: "Temporary chat",
    text: "Not listed, searched, remembered or backed up. Deleted after a day.",
  },
  read: {
    start: "Read aloud",
    stop: "Stop reading",
    failed: "Couldn’t read this aloud",
    failedText: "Your browser has no voice for this language. You can add voices in your system’s settings.",
  },
};

declare module "@/i18n" {
  interface Messages {
    details: typeof details;
  }
}
