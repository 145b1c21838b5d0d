export const usage = {
  range: "Period",
  days: "{n, plural, =365 {Year} other {# days}}",
  whose: "Whose usage",
  me: "Only mine",
  everyone: "Everyone",
  none: "Nothing used in this period",
  noneText: "Tokens and cost appear here when a run has ended.",
  perDay: "Per day",
  measure: "Show in the chart",
  details: "Details",
  byLabel: "Break down by",
  by: { day: "Day", model: "Model", agent: "Agent", person: "Person" },
  table: "Usage: {by}",
  column: {
    day: "Day",
    model: "Model",
    agent: "Agent",
    person: "Person",
    calls: "Model calls",
    input: "Input tokens",
    cached: "Cached",
    output: "Output tokens",
    tokens: "Tokens",
    cost: "Cost",
  },
  total: "Total",
  tokens: "{n} tokens",
  defaultAgent: "DeerFlow",
  gone: "Deleted account ({id})",
  csv: "Download CSV",
  utc: "Days are in UTC. A run counts on the day it ends.",
  unpriced:
    "{n, plural, one {# call was to a model without a known price. It’s not part of the cost.} other {# calls were to models without a known price. They’re not part of the cost.}}",
  estimated:
    "{n, plural, one {# call is counted by an estimate: its provider gave no figures.} other {# calls are counted by an estimate: their provider gave no figures.}}",
  limits: "Limits",
  scope: {
    turn: "Per turn",
    thread: "Per chat",
    person: "You, today",
    agent: "DeerFlow for everyone, today",
  },
  usedOf: "{used} of {limit}",
};

declare module "@/i18n" {
  interface Messages {
    usage: typeof usage;
  }
}
