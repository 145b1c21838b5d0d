// client.threads.stream: the agent streaming protocol.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { ASSISTANT, asks, call, client, collect, look, newClient, newThread, say, script, slowly, status } from "./support.mjs";

const LONG = Array.from({ length: 120 }, (_, index) => `word${index}`).join(" ");
// A browser's socket carries no header: the client refuses to be given some.
const TRANSPORTS = process.env.DEERFLOW_TOKEN ? ["sse"] : ["sse", "websocket"];

async function opened(transport, run, threadId) {
  const plain = transport === "websocket" ? newClient({ defaultHeaders: undefined }) : client;
  const options = { assistantId: ASSISTANT, transport };
  const thread = threadId ? plain.threads.stream(threadId, options) : plain.threads.stream(options);
  try {
    await run(thread);
  } finally {
    await thread.close();
  }
}

for (const transport of TRANSPORTS) {
  test(`${transport}: a run on a new thread is told by messages, tools and values`, async () => {
    const key = await script(look(), say("Hello there."));
    await opened(transport, async (thread) => {
      const [messages, tools] = [collect(thread.messages), collect(thread.toolCalls)];
      const { run_id } = await thread.run.start({ input: asks(key) });
      const state = await thread.output;
      assert.ok(run_id);
      assert.deepEqual(state.messages.map((message) => message.getType()), ["human", "ai", "tool", "ai"]);
      const texts = await Promise.all((await messages).map((message) => message.text));
      assert.equal(texts.at(-1), "Hello there.");
      const [tool] = await tools;
      assert.equal(tool.name, "ls");
      await tool.output;
    });
  });

  test(`${transport}: text arrives while it is being written`, async () => {
    const key = await script(slowly("one two three four"));
    await opened(transport, async (thread) => {
      const pieces = (async () => {
        for await (const message of thread.messages) return collect(message.text);
      })();
      await thread.run.start({ input: asks(key) });
      const heard = await pieces;
      assert.ok(heard.length > 1);
      assert.equal(heard.join(""), "one two three four");
    });
  });

  test(`${transport}: the second turn of a thread is told without the first`, async () => {
    const key = await script(say("One."), say("Two."));
    const threadId = await newThread();
    await client.runs.wait(threadId, ASSISTANT, { input: asks(key) });
    await opened(
      transport,
      async (thread) => {
        await thread.run.start({ input: asks("again") });
        const subscription = await thread.subscribe({ channels: ["values", "lifecycle"] });
        for await (const event of subscription) {
          if (event.method === "values" && event.params.data.messages.length === 4) break;
        }
        const state = await thread.state.get({ namespace: [] });
        assert.equal(state.values.messages.length, 4);
      },
      threadId,
    );
  });

  test(`${transport}: late listeners hear the run from its start`, async () => {
    const key = await script(say("Hello there."));
    await opened(transport, async (thread) => {
      await thread.run.start({ input: asks(key) });
      await thread.output;
      const subscription = await thread.subscribe({ channels: ["messages", "lifecycle"] });
      const heard = [];
      for await (const event of subscription) {
        heard.push(event);
        if (event.method === "lifecycle" && event.params.data.event === "completed") break;
      }
      assert.ok(heard.some((event) => event.params.data.delta?.text));
    });
  });

  test(`${transport}: an error of the protocol has its code`, async () => {
    await opened(transport, async (thread) => {
      await assert.rejects(thread.state.get({ namespace: ["nowhere:1"] }), (error) => /root/.test(error.message));
      await assert.rejects(thread.input.respond({ namespace: [], interrupt_id: "0".repeat(32), response: "yes" }));
    });
  });
}

test("state, checkpoints, tree and fork", async () => {
  const key = await script(say("One."), say("Another one."));
  await opened("sse", async (thread) => {
    await thread.run.start({ input: asks(key) });
    await thread.output;
    const { values, checkpoint } = await thread.state.get({ namespace: [], keys: ["messages"] });
    assert.deepEqual(Object.keys(values), ["messages"]);
    const { checkpoints } = await thread.state.listCheckpoints({ limit: 10 });
    assert.equal(checkpoints[0].id, checkpoint.id);
    const { tree } = await thread.agent.getTree();
    assert.equal(tree.status, "completed");
    const forked = await thread.state.fork({ checkpoint_id: checkpoints.at(-1).id, input: asks(`${key} again`) });
    const state = await client.runs.join(forked.thread_id, forked.run_id);
    assert.equal(state.messages.at(-1).content, "Another one.");
  });
});

test("a message is handed to a run on its way", async () => {
  const key = await script(slowly(LONG, 0.01), say("Yes, shorter."));
  await opened("sse", async (thread) => {
    const begun = (async () => {
      for await (const message of thread.messages) for await (const piece of message.text) if (piece) return;
    })();
    await thread.run.start({ input: asks(key) });
    await begun;
    await thread.input.inject({ namespace: [], message: { role: "user", content: "Shorter, please." } });
    const state = await thread.output;
    assert.deepEqual(state.messages.map((message) => message.text).slice(-2), ["Shorter, please.", "Yes, shorter."]);
  });
});

test("an unknown assistant and a foreign option are refused", async () => {
  const thread = client.threads.stream({ assistantId: "nobody" });
  await assert.rejects(thread.run.start({ input: asks("hi") }), status(422));
  await thread.close();
});

test("a thread that is not there cannot be followed", async () => {
  await opened("sse", async (thread) => assert.rejects(thread.subscribe("values"), status(404)), randomUUID());
});
