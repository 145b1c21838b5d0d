import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { client } from "./support.mjs";

test("items are kept, found, listed by namespace and forgotten", async () => {
  const root = randomUUID();
  await client.store.putItem([root, "a"], "one", { color: "red", n: 1 });
  await client.store.putItem([root, "b"], "two", { color: "blue", n: 2 }, { index: false, ttl: 60 });
  const item = await client.store.getItem([root, "a"], "one", { refreshTtl: true });
  assert.deepEqual([item.value, item.namespace, item.key], [{ color: "red", n: 1 }, [root, "a"], "one"]);
  assert.ok(item.createdAt && item.updatedAt);
  const { items } = await client.store.searchItems([root], { filter: { color: "blue" } });
  assert.deepEqual(items.map((one) => one.key), ["two"]);
  const { namespaces } = await client.store.listNamespaces({ prefix: [root], maxDepth: 2 });
  assert.deepEqual(namespaces, [[root, "a"], [root, "b"]]);
  await client.store.deleteItem([root, "a"], "one");
  assert.equal(await client.store.getItem([root, "a"], "one").catch((error) => (error.status === 404 ? null : error)), null);
});
