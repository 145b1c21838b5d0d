import { afterEach, describe, expect, it, vi } from "vitest";
import { ChildEvents } from "@/features/chat";
import { TaskStore } from "./task-store";

type Event = Parameters<ChildEvents["add"]>[0][number];

let seq = 0;
const event = (method: string, data: unknown, namespace: string[] = []): Event => ({
  seq: (seq += 1),
  method,
  params: { namespace, timestamp: 0, data },
});
const task = (type: string, more: object = {}) =>
  event("custom", { name: type, payload: { type, task_id: "c1", ...more } });
const started = task("task_started", { description: "Count", namespace: ["tools:n1"], background: false });
const says = (id: string, text: string, namespace = "tools:n1") =>
  event("updates", { node: "model", values: { messages: [{ id, type: "ai", content: text }] } }, [namespace]);
const texts = (store: TaskStore) => store.transcript("c1")?.messages.map(({ text }) => text);

afterEach(() => void vi.unstubAllGlobals());

/** The gateway has this transcript so far. */
function stored(...messages: object[]) {
  let send = () => {};
  const sent = new Promise<void>((resolve) => (send = resolve));
  const answer = () =>
    new Response(JSON.stringify(messages), { headers: { "Content-Type": "application/json" } });
  vi.stubGlobal("fetch", async () => sent.then(answer));
  return send;
}

describe("what is known of sub-agents", () => {
  it("holds what came before anybody looked", () => {
    const events = new ChildEvents();
    events.add([started, says("m1", "I look."), says("x", "another one", "tools:n2")]);
    const store = new TaskStore(events);
    expect(store.getFacts().get("c1")).toMatchObject({ status: "running", description: "Count" });
    expect(texts(store)).toEqual(["I look."]);
    const message = { type: "ai", content: "", tool_calls: [{ id: "t", name: "bash", args: {} }] };
    events.add([task("task_running", { message, tokens: 7, cost: 0.5 })]);
    expect(store.getFacts().get("c1")).toMatchObject({ tokens: 7, cost: 0.5, calls: [{ name: "bash" }] });
    events.add([task("task_failed", { status: "failed", error: "no model", result: "" })]);
    expect(store.getFacts().get("c1")).toMatchObject({ status: "failed", error: "no model", tokens: 7 });
  });

  it("goes on from a transcript that is loaded, with what came meanwhile once", async () => {
    const events = new ChildEvents();
    const store = new TaskStore(events);
    events.add([says("m1", "before anybody looked")]);
    expect(store.transcript("c1")).toBeNull();
    const send = stored(
      { id: "tools:n1:prompt", type: "human", content: "Count" },
      { id: "m1", type: "ai", content: "One" },
      { id: "m2", type: "ai", content: "Two" },
    );
    const loading = store.load("thread", "c1");
    events.add([says("m2", "Two"), says("m3", "Three"), says("x", "another one", "tools:n2")]);
    send();
    await loading;
    events.add([says("m4", "Four")]);
    expect(texts(store)).toEqual(["Count", "One", "Two", "Three", "Four"]);
  });

  it("begins again with one that goes on after a crash: it repeats all that it did", () => {
    const events = new ChildEvents();
    const store = new TaskStore(events);
    const half = event("messages", { event: "message-start", id: "half", role: "ai" }, ["tools:n1"]);
    events.add([started, says("m1", "One"), half]);
    events.add([started, says("m1", "One"), says("m2", "Two")]);
    expect(texts(store)).toEqual(["One", "Two"]);
  });
});
