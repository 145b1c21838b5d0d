import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { ASSISTANT, asks, client, newThread, status } from "./support.mjs";

const YEARLY = "0 0 1 1 *";

test("a schedule is made, found, changed and deleted", async () => {
  const mark = randomUUID();
  const made = await client.crons.create(ASSISTANT, { schedule: YEARLY, timezone: "Europe/Berlin", input: asks("hi"), metadata: { mark } });
  assert.ok(made.cron_id);
  const [found] = await client.crons.search({ metadata: { mark }, sortBy: "created_at", sortOrder: "desc" });
  assert.deepEqual([found.cron_id, found.schedule, found.enabled], [made.cron_id, YEARLY, true]);
  assert.equal(await client.crons.count({ metadata: { mark } }), 1);
  const changed = await client.crons.update(made.cron_id, { enabled: false });
  assert.equal(changed.enabled, false);
  await client.crons.delete(made.cron_id);
  await assert.rejects(client.crons.delete(made.cron_id), status(404));
});

test("a schedule may belong to a thread", async () => {
  const threadId = await newThread();
  const made = await client.crons.createForThread(threadId, ASSISTANT, { schedule: YEARLY, input: asks("hi") });
  const found = await client.crons.search({ threadId });
  assert.deepEqual(found.map((one) => one.cron_id), [made.cron_id]);
  await client.crons.delete(made.cron_id);
});

test("a schedule that never comes is refused", async () => {
  await assert.rejects(client.crons.create(ASSISTANT, { schedule: "every now and then", input: asks("hi") }), status(422));
});
