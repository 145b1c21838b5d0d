/** Follows a thread over the agent streaming protocol: server-sent events, taken up again where they broke off. */
import { request, ApiError } from "@/lib/http";

export interface ProtocolEvent {
  seq: number;
  method: string;
  params: { namespace: string[]; timestamp: number; data: unknown };
}

export interface Follower {
  onEvents(events: ProtocolEvent[]): void;
  onConnection(state: "live" | "retrying"): void;
  /** It cannot be followed any more: it is gone, or it is someone else's now. */
  onGone(error: ApiError): void;
}

/** Channels of changes; the state itself is loaded once. */
const CHANNELS = ["updates", "lifecycle", "input", "messages", "custom"];
/** The server says something every five seconds; three misses, and the connection is taken for dead. */
const SILENCE = 16_000;
/** Milliseconds for which events are collected before they are delivered: a screen draws no faster. */
const TOGETHER = 33;
export const WAITS = [300, 1000, 2000, 4000, 8000];

/** Returns how to stop. `since` is the position after which to begin; 0: from the start. */
export function follow(threadId: string, since: number, follower: Follower): () => void {
  const stopped = new AbortController();
  const path = `/api/threads/${encodeURIComponent(threadId)}/stream/events`;
  let position = since;
  let failures = 0;
  const outbox = new Outbox((events) => follower.onEvents(events));

  async function connect(): Promise<void> {
    const connection = new AbortController();
    const giveUp = () => connection.abort();
    stopped.signal.addEventListener("abort", giveUp);
    window.addEventListener("offline", giveUp);
    const watch = new Watchdog(SILENCE, giveUp);
    try {
      const body = JSON.stringify({ channels: CHANNELS, ...(position ? { since: position } : {}) });
      const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
      const answer = await request("POST", path, { body, headers, signal: connection.signal });
      for await (const text of textsOf(answer)) {
        watch.heard();
        if (failures !== 0 || text) follower.onConnection("live");
        failures = 0;
        for (const event of eventsIn(text)) {
          position = Math.max(position, event.seq);
          outbox.add(event);
        }
      }
    } finally {
      watch.stop();
      stopped.signal.removeEventListener("abort", giveUp);
      window.removeEventListener("offline", giveUp);
    }
  }

  async function keepConnected(): Promise<void> {
    while (!stopped.signal.aborted) {
      try {
        await connect();
      } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 403))
          return follower.onGone(error);
      }
      if (stopped.signal.aborted) return;
      // A stream that the server ends in good order is no news.
      if (failures > 0 || !navigator.onLine) follower.onConnection("retrying");
      await pause(WAITS[Math.min(failures, WAITS.length - 1)] ?? 0, stopped.signal);
      failures += 1;
    }
  }

  void keepConnected();
  return () => {
    stopped.abort();
    outbox.close();
  };
}

/** The texts of server-sent events as they arrive; "" for a heartbeat. */
async function* textsOf(answer: Response): AsyncGenerator<string> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    const whole = (rest + value).split(/\r?\n\r?\n/);
    rest = whole.pop() ?? "";
    yield* whole.length ? whole : [""];
  }
}

export function eventsIn(text: string): ProtocolEvent[] {
  const data = text
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trimStart())
    .join("\n");
  if (!data) return [];
  const event = JSON.parse(data) as ProtocolEvent;
  return typeof event.seq === "number" && event.params ? [event] : [];
}

/** Waits, but not longer than until the network is back. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds * (0.8 + Math.random() * 0.4));
    window.addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}

class Outbox {
  private waiting: ProtocolEvent[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  constructor(private readonly deliver: (events: ProtocolEvent[]) => void) {}

  add(event: ProtocolEvent) {
    this.waiting.push(event);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.deliver(this.waiting.splice(0));
    }, TOGETHER);
  }

  close() {
    clearTimeout(this.timer);
  }
}

class Watchdog {
  private timer: ReturnType<typeof setTimeout> | undefined;
  constructor(
    private readonly patience: number,
    private readonly bark: () => void,
  ) {
    this.heard();
  }

  heard() {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.bark, this.patience);
  }

  stop() {
    clearTimeout(this.timer);
  }
}
