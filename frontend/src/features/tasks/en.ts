export const tasks = {
  group: "Sub-agents",
  count: "{n, plural, one {# sub-agent} other {# sub-agents}}",
  inBackground: "{n, plural, one {# sub-agent in the background} other {# sub-agents in the background}}",
  open: "Open what {name} did",
  stop: "Stop {name}",
  stopping: "Stopping…",
  steps: "Steps",
  prompt: "Task",
  files: "{n, plural, one {# file} other {# files}}",
  filesChanged: "Files changed",
  background: "In the background",
  nothing: "Nothing was said yet.",
  unknown: "This conversation has no such sub-agent.",
  status: {
    preparing: "Preparing",
    running: "Working",
    waiting: "Waiting for you",
    completed: "Done",
    turn_limit: "Out of turns",
    loop: "Stopped: went in circles",
    failed: "Failed",
    timed_out: "Out of time",
    cancelled: "Stopped",
    deferred: "Deferred: too many at once",
  },
  /** Number of sub-agents by state, in one line. */
  some: {
    preparing: "{n} preparing",
    running: "{n} working",
    waiting: "{n} waiting for you",
    completed: "{n} done",
    turn_limit: "{n} out of turns",
    loop: "{n} went in circles",
    failed: "{n} failed",
    timed_out: "{n} out of time",
    cancelled: "{n} stopped",
    deferred: "{n} deferred",
  },
};

declare module "@/i18n" {
  interface Messages {
    tasks: typeof tasks;
  }
}
