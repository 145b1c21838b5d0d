// What every version of the client in use must be able to do; the default suite runs it with the pinned one, nightly with others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ASSISTANT, asks, client, collect, newThread, say, script, slowly } from "./support.mjs";

test("a thread is made, talked in, found and deleted", async () => {
  const threadId = await newThread();
  const parts = await collect(client.runs.stream(threadId, ASSISTANT, { input: asks(await script(say("Hello."))), streamMode: ["values", "messages-tuple"] }));
  assert.equal(parts.findLast((part) => part.event === "values").data.messages.at(-1).content, "Hello.");
  assert.equal((await client.threads.getState(threadId)).values.messages.length, 2);
  assert.ok((await client.threads.search({ limit: 100 })).some((thread) => thread.thread_id === threadId));
  await client.threads.delete(threadId);
  assert.ok((await client.threads.search({ limit: 100 })).every((thread) => thread.thread_id !== threadId));
});

test("a run is joined with one mode, several, or none in particular", async () => {
  const threadId = await newThread();
  const run = await client.runs.create(threadId, ASSISTANT, { input: asks(await script(slowly("Well said, all of it."))) });
  const joined = async (options) => new Set((await collect(client.runs.joinStream(threadId, run.run_id, options))).map((part) => part.event));
  for (const lastEventId of ["-1", undefined]) {
    const events = await joined({ streamMode: ["updates", "messages-tuple"], lastEventId });
    assert.ok(events.has("updates") && events.has("messages") && !events.has("values"), [...events].join());
  }
  assert.ok((await joined({ streamMode: "values" })).has("values"));
  assert.ok((await joined({})).has("values"));
});

test("what only LangSmith needs is accepted", async () => {
  const threadId = await newThread();
  const run = { input: asks(await script(say("Hello."))), feedbackKeys: ["stars"], _langsmithTracer: { projectName: "p" } };
  const values = await client.runs.wait(threadId, ASSISTANT, run);
  assert.equal(values.messages.at(-1).content, "Hello.");
});

test("lists in addresses are taken as clients write them", async () => {
  const threadId = await newThread();
  const run = await client.runs.create(threadId, ASSISTANT, { input: asks(await script(say("Hello."))) });
  const ask = async (path, query) => fetch(`${process.env.DEERFLOW_URL}/threads/${threadId}${path}?${new URLSearchParams(query)}`);
  await client.runs.join(threadId, run.run_id);
  for (const modes of [[["stream_mode", "updates"], ["stream_mode", "values"]], { stream_mode: "updates,values" }, { stream_mode: '["updates","values"]' }]) {
    const text = await (await ask(`/runs/${run.run_id}/stream`, modes)).text();
    assert.ok(text.includes("event: updates") && text.includes("event: values") && !text.includes("event: messages"), text);
  }
  assert.deepEqual(await (await ask("/runs", { select: '["run_id"]' })).json(), [{ run_id: run.run_id }]);
  assert.deepEqual(Object.keys(await (await ask("/state", { select: '["next","values.title"]' })).json()).sort(), ["next", "values"]);
  for (const wrong of ["values,nonsense", '["nonsense"]', '{"values": 1}', "[1]", '["values"']) {
    assert.equal((await ask(`/runs/${run.run_id}/stream`, { stream_mode: wrong })).status, 422, wrong);
    assert.equal((await ask("/stream", { stream_mode: wrong })).status, 422, wrong);
  }
  const following = await ask("/stream", { stream_mode: '["run_modes","lifecycle"]' });
  assert.equal(following.status, 200);
  await following.body.cancel();
});

test("threads are found by graph and assistant, with their values, as chat interfaces list them", async () => {
  const threadId = await newThread();
  await collect(client.runs.stream(threadId, ASSISTANT, { input: asks(await script(say("Hello."))) }));
  const assistant = await client.assistants.get(ASSISTANT);
  for (const metadata of [{ graph_id: ASSISTANT }, { graph_id: "agent" }, { assistant_id: assistant.assistant_id }]) {
    const found = (await client.threads.search({ metadata, limit: 100 })).find((thread) => thread.thread_id === threadId);
    assert.deepEqual(found?.values.messages.map((message) => message.content).slice(1), ["Hello."]);
    assert.deepEqual([found.metadata.graph_id, found.metadata.assistant_id], [ASSISTANT, assistant.assistant_id]);
  }
  for (const metadata of [{ graph_id: "another" }, { assistant_id: threadId }, { graph_id: ASSISTANT, mark: "none" }]) {
    assert.deepEqual(await client.threads.search({ metadata, limit: 100 }), []);
  }
});
