// What `useStream` of @langchain/react is made of, without React: its controller.
import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamController } from "@langchain/langgraph-sdk/stream";
import { ASSISTANT, asks, client, look, newThread, say, script, slowly, until } from "./support.mjs";

const LONG = Array.from({ length: 400 }, (_, index) => `word${index}`).join(" ");

async function screen(threadId, run) {
  const controller = new StreamController({ assistantId: ASSISTANT, client, threadId: threadId ?? null });
  try {
    await run(controller, () => controller.rootStore.getSnapshot());
  } finally {
    await controller.dispose();
  }
}

// The end of a run comes on a line of its own and may overtake the last values.
const shows = (state, ...expected) => until(`shown: ${expected}`, () => expected.join() === types(state()).join() && settled(state()));
const answered = (state, text) => until(`answered: ${text}`, () => last(state()) === text && settled(state()));

const types = (state) => state.messages.map((message) => message.getType());
const last = (state) => state.messages.at(-1)?.text ?? "";
const settled = (state) => !state.isLoading && !state.isThreadLoading;

test("a first message makes the thread, and the answer is there once", async () => {
  const key = await script(look(), say("Hello there."));
  await screen(null, async (controller, state) => {
    await controller.submit(asks(key));
    await shows(state, "human", "ai", "tool", "ai");
    await answered(state, "Hello there.");
    assert.equal(state().error, undefined);
    assert.deepEqual(state().toolCalls.map((tool) => [tool.name, tool.status]), [["ls", "finished"]]);
    assert.ok(state().threadId);
  });
});

test("a conversation goes on over several turns on one screen", async () => {
  const key = await script(say("One."), say("Two."), say("Three."));
  await screen(null, async (controller, state) => {
    for (const expected of ["One.", "Two.", "Three."]) {
      await controller.submit(asks(`${key} ${expected}`));
      await answered(state, expected);
    }
    assert.equal(state().messages.length, 6);
    assert.equal(new Set(state().messages.map((message) => message.id)).size, 6);
  });
});

test("a screen that opens later shows the same, and goes on", async () => {
  const key = await script(say("One."), say("Two."));
  let threadId;
  await screen(null, async (controller, state) => {
    await controller.submit(asks(key));
    threadId = state().threadId;
  });
  await screen(threadId, async (controller, state) => {
    await controller.hydrationPromise;
    assert.deepEqual(types(state()), ["human", "ai"]);
    await controller.submit(asks("again"));
    await shows(state, "human", "ai", "human", "ai");
    await answered(state, "Two.");
  });
});

test("a screen that opens during a run sees it live to its end", async () => {
  const threadId = await newThread();
  const text = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
  await client.runs.create(threadId, ASSISTANT, { input: asks(await script(slowly(text))) });
  await screen(threadId, async (controller, state) => {
    await controller.hydrationPromise;
    await answered(state, text);
    await shows(state, "human", "ai");
  });
});

test("a screen sees a run that another one starts", async () => {
  const key = await script(say("One."), say("Two."));
  const threadId = await newThread();
  await client.runs.wait(threadId, ASSISTANT, { input: asks(key) });
  await screen(threadId, async (mine, shown) => {
    await mine.hydrationPromise;
    await mine.submit(asks("two"));
    await answered(shown, "Two.");
    await client.runs.wait(threadId, ASSISTANT, { input: asks(await script(say("From elsewhere."))) });
    await answered(shown, "From elsewhere.");
    await until("all is shown", () => shown().messages.length === 6);
  });
});

test("stopping keeps what was said so far, also for who looks later", async () => {
  const key = await script(slowly(LONG));
  await screen(null, async (controller, state) => {
    const submitted = controller.submit(asks(key));
    await until("words arrive", () => /word3/.test(last(state())));
    await controller.stop();
    await submitted;
    const { threadId } = state();
    await until("the run has ended", async () => (await client.threads.get(threadId)).status !== "busy");
    const stored = (await client.threads.getState(threadId)).values.messages;
    assert.match(stored.at(-1).content, /^word0 word1/);
  });
});

test("a turn is asked again from the checkpoint before it", async () => {
  const key = await script(say("One."), say("Two."), say("Another two."));
  await screen(null, async (controller, state) => {
    await controller.submit(asks(`${key} first`));
    await answered(state, "One.");
    await controller.submit(asks("second"));
    await answered(state, "Two.");
    const asked = state().messages[2];
    const { parentCheckpointId } = controller.messageMetadataStore.getSnapshot().get(asked.id);
    await controller.submit(asks("second, edited"), { forkFrom: parentCheckpointId });
    await answered(state, "Another two.");
    const contents = state().messages.map((message) => message.text);
    assert.deepEqual(contents.slice(1), ["One.", "second, edited", "Another two."]);
  });
});

test("a run that fails says why", async () => {
  const key = await script({ kind: "http_error", status: 400, body: "The model does not like this." });
  await screen(null, async (controller, state) => {
    await controller.submit(asks(key));
    assert.ok(state().error instanceof Error);
    assert.ok(state().error.message.length > 0);
    assert.equal(state().isLoading, false);
  });
});
