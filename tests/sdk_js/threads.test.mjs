import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { ASSISTANT, asks, client, collect, newThread, say, script, status } from "./support.mjs";

async function talk(...texts) {
  const key = await script(...texts.map(say));
  const threadId = await newThread();
  for (const [index] of texts.entries()) await client.runs.wait(threadId, ASSISTANT, { input: asks(`${key} ${index}`) });
  return threadId;
}

test("a thread is made, found, changed, counted and deleted", async () => {
  const mark = randomUUID();
  const made = await client.threads.create({ metadata: { mark } });
  assert.equal(made.status, "idle");
  assert.equal((await client.threads.get(made.thread_id)).metadata.mark, mark);
  const found = await client.threads.search({ metadata: { mark }, sortBy: "created_at", sortOrder: "asc", select: ["thread_id"] });
  assert.deepEqual(found, [{ thread_id: made.thread_id }]);
  assert.equal(await client.threads.count({ metadata: { mark } }), 1);
  const changed = await client.threads.update(made.thread_id, { metadata: { more: 1 } });
  assert.deepEqual([changed.metadata.mark, changed.metadata.more], [mark, 1]);
  await client.threads.update(made.thread_id, { metadata: { more: 2 }, returnMinimal: true });
  assert.equal((await client.threads.search({ ids: [made.thread_id], status: "idle" })).length, 1);
  await client.threads.delete(made.thread_id);
  await assert.rejects(client.threads.get(made.thread_id), status(404));
});

test("the same id twice is refused unless it may be there", async () => {
  const threadId = randomUUID();
  await client.threads.create({ threadId });
  await assert.rejects(client.threads.create({ threadId, ifExists: "raise" }), status(409));
  assert.equal((await client.threads.create({ threadId, ifExists: "do_nothing" })).thread_id, threadId);
});

test("a thread can be imported step by step, and forgotten in time", async () => {
  const messages = [{ type: "human", content: "Hello" }, { type: "ai", content: "Hi." }];
  const supersteps = messages.map((message, index) => ({
    updates: [{ values: { messages: [message] }, asNode: index ? "model" : "__start__" }],
  }));
  const threadId = await newThread({ supersteps, ttl: 60 });
  const state = await client.threads.getState(threadId);
  assert.deepEqual(state.values.messages.map((message) => message.content), ["Hello", "Hi."]);
});

test("the state is read as it is and was, and changed by hand", async () => {
  const threadId = await talk("One.", "Two.");
  const state = await client.threads.getState(threadId);
  assert.equal(state.values.messages.length, 4);
  assert.deepEqual(state.next, []);
  const history = await client.threads.getHistory(threadId, { limit: 20 });
  assert.equal(history[0].checkpoint.checkpoint_id, state.checkpoint.checkpoint_id);
  const older = await client.threads.getHistory(threadId, { limit: 1, before: { configurable: history[0].checkpoint } });
  assert.equal(older[0].checkpoint.checkpoint_id, history[1].checkpoint.checkpoint_id);
  const first = history.find((one) => one.values.messages?.length === 2);
  const then = await client.threads.getState(threadId, first.checkpoint.checkpoint_id);
  assert.equal(then.values.messages.length, 2);
  assert.equal((await client.threads.getState(threadId, first.checkpoint)).values.messages.length, 2);
  const forked = await client.threads.updateState(threadId, {
    values: { messages: [{ role: "user", content: "By hand" }] },
    checkpointId: first.checkpoint.checkpoint_id,
  });
  assert.ok(forked.checkpoint.checkpoint_id > state.checkpoint.checkpoint_id);
  assert.equal((await client.threads.getState(threadId)).values.messages.at(-1).content, "By hand");
  await client.threads.patchState(threadId, { looked_at: true });
});

test("a copy lives on without its original", async () => {
  const threadId = await talk("One.");
  const copy = await client.threads.copy(threadId);
  await client.threads.delete(threadId);
  assert.equal((await client.threads.getState(copy.thread_id)).values.messages.length, 2);
});

test("pruning keeps the newest state, or nothing", async () => {
  const [kept, gone] = [await talk("One."), await talk("Two.")];
  await client.threads.prune([kept], { strategy: "keep_latest" });
  assert.equal((await client.threads.getState(kept)).values.messages.length, 2);
  assert.equal((await client.threads.getHistory(kept)).length, 1);
  await client.threads.prune([gone]);
  await assert.rejects(client.threads.get(gone), status(404));
});

test("a thread's stream tells of its runs", async () => {
  const key = await script(say("Hello."));
  const threadId = await newThread();
  const stop = new AbortController();
  const names = [];
  const following = (async () => {
    for await (const part of client.threads.joinStream(threadId, { streamMode: ["run_modes"], signal: stop.signal })) {
      names.push(part.event);
      if (part.event === "end" || part.event === "values") stop.abort();
    }
  })().catch((error) => assert.ok(stop.signal.aborted, error));
  await client.runs.wait(threadId, ASSISTANT, { input: asks(key) });
  await following;
  assert.ok(names.length > 0, names.join());
});

test("what is not there looks the same everywhere", async () => {
  const nowhere = randomUUID();
  await assert.rejects(client.threads.getState(nowhere), status(404));
  await assert.rejects(client.threads.getHistory(nowhere), status(404));
  await assert.rejects(client.threads.delete(nowhere), status(404));
  await assert.rejects(client.runs.list(nowhere), status(404));
  await assert.rejects(collect(client.threads.joinStream(nowhere)), status(404));
});
