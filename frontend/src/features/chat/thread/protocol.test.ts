import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ApiError } from "@/lib/http";
import { follow, type ProtocolEvent } from "./protocol";

const frame = (seq: number) =>
  `id: ${seq}\ndata: ${JSON.stringify({ seq, method: "custom", params: { namespace: [], timestamp: 0, data: {} } })}\n\n`;

/** Answers of the gateway, one after the other; what was asked is in `asked`. */
function gateway(...answers: (Response | Error)[]) {
  const asked: { since?: number }[] = [];
  vi.stubGlobal("fetch", (_path: string, init: RequestInit) => {
    asked.push(JSON.parse(init.body as string) as { since?: number });
    const answer = answers.shift();
    if (answer instanceof Error) return Promise.reject(answer);
    return answer ? Promise.resolve(answer) : new Promise(() => {});
  });
  return asked;
}

function stream(...pieces: string[]): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      pieces.forEach((piece) => controller.enqueue(encoder.encode(piece)));
      controller.close();
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

describe("following a thread", () => {
  let stop = () => {};
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    stop();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  function following(since = 0) {
    const seen: number[] = [];
    const states: string[] = [];
    const gone: ApiError[] = [];
    stop = follow("t1", since, {
      onEvents: (events: ProtocolEvent[]) => seen.push(...events.map(({ seq }) => seq)),
      onConnection: (state) => states.push(state),
      onGone: (error) => gone.push(error),
    });
    return { seen, states, gone };
  }

  it("takes up a broken stream where it was, and says so meanwhile", async () => {
    const asked = gateway(
      stream(frame(65), frame(66)),
      new TypeError("network"),
      stream(": heartbeat\n\n", frame(67)),
    );
    const { seen, states } = following();
    await vi.advanceTimersByTimeAsync(5000);
    expect(seen).toEqual([65, 66, 67]);
    expect(asked.slice(0, 3).map(({ since }) => since)).toEqual([undefined, 66, 66]);
    expect(states).toContain("retrying");
    expect(states.at(-1)).not.toBe(undefined);
  });

  it("reads events however the network cuts them", async () => {
    const whole = frame(1) + frame(2);
    gateway(stream(whole.slice(0, 9), whole.slice(9, 40), whole.slice(40)));
    const { seen } = following();
    await vi.advanceTimersByTimeAsync(100);
    expect(seen).toEqual([1, 2]);
  });

  it("gives up a thread that is gone", async () => {
    const asked = gateway(new Response('{"detail": "There is no thread t1."}', { status: 404 }));
    const { gone } = following();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(gone.map(({ message }) => message)).toEqual(["There is no thread t1."]);
    expect(asked).toHaveLength(1);
  });
});
