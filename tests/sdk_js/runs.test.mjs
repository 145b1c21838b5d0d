import assert from "node:assert/strict";
import { test } from "node:test";
import { ASSISTANT, asks, client, collect, look, newThread, say, script, slowly, status, until } from "./support.mjs";

const LONG = Array.from({ length: 400 }, (_, index) => `word${index}`).join(" ");

/** Until the model has begun to answer. */
async function begun(threadId, run) {
  for await (const part of client.runs.joinStream(threadId, run.run_id, { lastEventId: "-1", streamMode: ["messages-tuple"] })) {
    if (part.event === "messages" && part.data[0].content) return;
  }
}

test("a run is streamed from its start to its end", async () => {
  const key = await script(look(), say("Hello there."));
  const threadId = await newThread();
  let created;
  const parts = await collect(
    client.runs.stream(threadId, ASSISTANT, {
      input: asks(key),
      streamMode: ["values", "messages-tuple", "updates", "custom"],
      onRunCreated: (run) => (created = run),
    }),
  );
  assert.equal(parts[0].event, "metadata");
  assert.equal(parts[0].data.run_id, created.run_id);
  assert.equal(created.thread_id, threadId);
  const text = parts.filter((part) => part.event === "messages" && part.data[0].type === "AIMessageChunk");
  assert.ok(text.map((part) => part.data[0].content).join("").endsWith("Hello there."));
  const values = parts.filter((part) => part.event === "values").at(-1).data;
  assert.deepEqual(values.messages.map((message) => message.type), ["human", "ai", "tool", "ai"]);
  assert.ok(parts.some((part) => part.event === "updates" && part.data.tools));
  assert.equal((await client.runs.get(threadId, created.run_id)).status, "success");
});

test("a run without a thread is streamed, waited for, and leaves nothing behind", async () => {
  const parts = await collect(client.runs.stream(null, ASSISTANT, { input: asks(await script(say("One."))) }));
  assert.equal(parts.filter((part) => part.event === "values").at(-1).data.messages.at(-1).content, "One.");
  const values = await client.runs.wait(null, ASSISTANT, { input: asks(await script(say("Two."))) });
  assert.equal(values.messages.at(-1).content, "Two.");
  const run = await client.runs.create(null, ASSISTANT, { input: asks(await script(say("Three."))) });
  assert.ok(run.run_id);
});

test("a run is made, joined, listed and deleted", async () => {
  const threadId = await newThread();
  const run = await client.runs.create(threadId, ASSISTANT, { input: asks(await script(say("Hello."))), metadata: { a: 1 } });
  assert.ok(["pending", "running"].includes(run.status));
  const values = await client.runs.join(threadId, run.run_id);
  assert.equal(values.messages.at(-1).content, "Hello.");
  const listed = await client.runs.list(threadId, { status: "success" });
  assert.deepEqual(listed.map((one) => one.run_id), [run.run_id]);
  const selected = await client.runs.list(threadId, { select: ["run_id", "kwargs"] });
  assert.deepEqual(Object.keys(selected[0]).sort(), ["kwargs", "run_id"]);
  await client.runs.delete(threadId, run.run_id);
  await assert.rejects(client.runs.get(threadId, run.run_id), status(404));
});

test("a stream is joined late and told from its start, or from where one was", async () => {
  const threadId = await newThread();
  const run = await client.runs.create(threadId, ASSISTANT, { input: asks(await script(slowly("one two three four"))) });
  const parts = await collect(client.runs.joinStream(threadId, run.run_id, { lastEventId: "-1", streamMode: ["messages-tuple"] }));
  const ids = parts.map((part) => part.id).filter(Boolean);
  assert.equal(new Set(ids).size, ids.length);
  const half = ids[Math.floor(ids.length / 2)];
  const rest = await collect(client.runs.joinStream(threadId, run.run_id, { lastEventId: half, streamMode: ["messages-tuple"] }));
  assert.ok(rest.every((part) => !part.id || Number(part.id) > Number(half)));
  const anywhere = await collect(client.runs.joinStream(null, run.run_id, { lastEventId: "-1" }));
  assert.ok(anywhere.length > 0);
});

test("a batch starts several runs", async () => {
  const keys = [await script(say("One.")), await script(say("Two."))];
  const runs = await client.runs.createBatch(keys.map((key) => ({ assistantId: ASSISTANT, input: asks(key) })));
  assert.equal(runs.length, 2);
});

test("a run is stopped, and its half answer stays", async () => {
  const threadId = await newThread();
  const run = await client.runs.create(threadId, ASSISTANT, { input: asks(await script(slowly(LONG))) });
  await begun(threadId, run);
  await client.runs.cancel(threadId, run.run_id, true);
  assert.equal((await client.runs.get(threadId, run.run_id)).status, "interrupted");
  await assert.rejects(client.runs.cancel(threadId, run.run_id));
  const { values } = await client.threads.getState(threadId);
  assert.match(values.messages.at(-1).content, /^word0/);
});

test("many runs are stopped at once, and can be undone", async () => {
  const threadId = await newThread();
  const run = await client.runs.create(threadId, ASSISTANT, { input: asks(await script(slowly(LONG))) });
  await begun(threadId, run);
  await client.runs.cancelMany({ threadId, runIds: [run.run_id], action: "rollback" });
  await until("the run is gone", () => client.runs.get(threadId, run.run_id).then(() => false, (error) => error.status === 404));
  assert.deepEqual((await client.threads.getState(threadId)).values.messages ?? [], []);
});

test("a second run waits, is refused, or takes over, as it asks", async () => {
  const threadId = await newThread();
  const first = await client.runs.create(threadId, ASSISTANT, { input: asks(await script(slowly(LONG))) });
  await begun(threadId, first);
  const key = await script(say("Second."));
  await assert.rejects(
    client.runs.create(threadId, ASSISTANT, { input: asks(key), multitaskStrategy: "reject" }),
    status(409),
  );
  const waiting = await client.runs.create(threadId, ASSISTANT, { input: asks(key), multitaskStrategy: "enqueue" });
  assert.equal(waiting.status, "pending");
  await client.runs.cancel(threadId, waiting.run_id);
  const values = await client.runs.wait(threadId, ASSISTANT, { input: asks(key), multitaskStrategy: "interrupt" });
  assert.equal(values.messages.at(-1).content, "Second.");
  assert.equal((await client.runs.get(threadId, first.run_id)).status, "interrupted");
});

test("what cannot be is refused by name", async () => {
  const threadId = await newThread();
  await assert.rejects(client.runs.create(threadId, "nobody", { input: asks("hi") }), status(422));
  await assert.rejects(client.runs.create(threadId, ASSISTANT, { input: asks("hi"), streamMode: ["everything"] }), status(422));
  await assert.rejects(client.runs.create(threadId, ASSISTANT, { input: asks("hi"), checkpoint: { checkpoint_ns: "sub:1" } }), status(422));
});
