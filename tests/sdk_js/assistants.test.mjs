import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { ASSISTANT, client, status } from "./support.mjs";

test("the built-in assistant is found, described and drawn", async () => {
  const found = await client.assistants.search({ graphId: ASSISTANT });
  assert.ok(found.some((one) => one.graph_id === ASSISTANT));
  const assistant = await client.assistants.get(ASSISTANT);
  assert.equal(assistant.graph_id, ASSISTANT);
  const graph = await client.assistants.getGraph(assistant.assistant_id);
  assert.ok(graph.nodes.some((node) => node.id === "model"));
  assert.equal((await client.assistants.getSchemas(assistant.assistant_id)).graph_id, ASSISTANT);
  assert.deepEqual(await client.assistants.getSubgraphs(assistant.assistant_id), {});
});

test("an assistant is made, changed, taken back a version, and deleted", async () => {
  const mark = randomUUID();
  const made = await client.assistants.create({ graphId: ASSISTANT, name: "Mine", metadata: { mark } });
  assert.equal(made.version, 1);
  const changed = await client.assistants.update(made.assistant_id, { name: "Still mine", metadata: { mark } });
  assert.deepEqual([changed.name, changed.version], ["Still mine", 2]);
  const versions = await client.assistants.getVersions(made.assistant_id);
  assert.deepEqual(versions.map((one) => one.version), [2, 1]);
  assert.equal((await client.assistants.setLatest(made.assistant_id, 1)).version, 1);
  assert.equal(await client.assistants.count({ metadata: { mark } }), 1);
  const page = await client.assistants.search({ metadata: { mark }, limit: 1, includePagination: true });
  assert.equal(page.assistants.length, 1);
  await client.assistants.delete(made.assistant_id);
  await assert.rejects(client.assistants.get(made.assistant_id), status(404));
});

test("the same id twice is refused unless it may be there", async () => {
  const assistantId = randomUUID();
  await client.assistants.create({ graphId: ASSISTANT, assistantId });
  await assert.rejects(client.assistants.create({ graphId: ASSISTANT, assistantId }), status(409));
  const again = await client.assistants.create({ graphId: ASSISTANT, assistantId, ifExists: "do_nothing" });
  assert.equal(again.assistant_id, assistantId);
  await client.assistants.delete(assistantId);
});
