/** Keys of what TanStack Query keeps. `/api/events` makes them stale by their beginnings. */
export const keys = {
  me: ["me"],
  setup: ["setup"],
  models: ["models"],
  connections: ["connections"],
  system: ["system"],
  tokens: ["tokens"],
  grants: ["grants"],
  users: ["users"],
  agents: ["agents"],
  memoryOn: ["memoryOn"],
  memory: (agent: string | null) => ["memory", agent],
  /** Of all lists of threads, search results included. */
  threads: ["threads"],
  /** Of all that belongs to one thread. */
  thread: (id: string) => ["thread", id],
  turns: (id: string) => ["thread", id, "turns"],
  runs: (id: string) => ["thread", id, "runs"],
  receipts: (id: string, run: string) => ["thread", id, "receipts", run],
  usage: (id: string) => ["thread", id, "usage"],
  context: (id: string, model: string | null) => ["thread", id, "context", model],
  artifacts: (id: string) => ["thread", id, "artifacts"],
  versions: (id: string, path: string) => ["thread", id, "versions", path],
  changes: (id: string) => ["thread", id, "changes"],
  uploads: (id: string) => ["thread", id, "uploads"],
  file: (id: string, path: string) => ["thread", id, "file", path],
  suggestions: (id: string, messageId: string) => ["suggestions", id, messageId],
} as const;
