import { beforeEach, expect, test, vi } from "vitest";
import type { Run } from "@/lib/api";
import { answererOf } from "./session-views";
import { ThreadSession } from "./thread-session";

const settings = { modelName: null, mode: "pro", effort: null } as const;
const LEAD = { assistantId: "lead-id", agent: null };
const WRITER = { assistantId: "writer-id", agent: { name: "writer" } };
let sent: { assistant_id: string; context: Record<string, unknown>; command?: unknown }[] = [];

beforeEach(() => {
  sent = [];
  vi.stubGlobal("fetch", async (_: string, init: RequestInit) => {
    sent.push(JSON.parse(init.body as string) as (typeof sent)[0]);
    return new Response("{}", { status: 200 });
  });
});

const said = { text: "Hi" };

test("a thread goes on with whoever answered last", async () => {
  await new ThreadSession("t", true).send(said, settings, { last: WRITER });
  await new ThreadSession("t", true).send(said, settings, { last: LEAD });
  await new ThreadSession("t", true).send(said, settings);
  expect(sent.map((one) => one.assistant_id)).toEqual(["writer-id", "lead-id", "lead_agent"]);
});

test("who is picked counts more, the default agent too", async () => {
  await new ThreadSession("t", true).send(said, { ...settings, agent: { name: "poet" } }, { last: WRITER });
  await new ThreadSession("t", true).send(said, { ...settings, agent: null }, { last: WRITER });
  expect(sent.map((one) => one.assistant_id)).toEqual(["poet", "lead_agent"]);
});

test("an answer reaches the agent that asked, whoever is picked meanwhile", async () => {
  await new ThreadSession("t", true).respond("i", "yes", { ...settings, agent: { name: "poet" } }, WRITER);
  expect(sent[0]).toMatchObject({ assistant_id: "writer-id", command: { resume: { i: "yes" } } });
});

test("a conversation that makes an agent stays one, also where nothing is known but its runs", async () => {
  const poet = { name: "poet", setUp: true };
  await new ThreadSession("t", true).send(said, { ...settings, agent: poet });
  const asked = sent[0]!;
  expect(asked).toMatchObject({
    assistant_id: "lead_agent",
    context: {
      is_bootstrap: true,
      agent_name: "poet",
      time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    },
  });
  for (const agent of [null, "poet"]) {
    const run = { assistant_id: "any", agent, kwargs: { context: asked.context } } as unknown as Run;
    await new ThreadSession("t", true).send(said, settings, { last: answererOf(run) });
    expect(sent.at(-1)).toEqual({ ...asked, input: expect.anything() as unknown });
  }
});

test("a run says whose it is", () => {
  const run = (more: object) => ({ assistant_id: "a", agent: null, kwargs: {}, ...more }) as unknown as Run;
  expect(answererOf(undefined)).toBeNull();
  expect(answererOf(run({}))).toEqual({ assistantId: "a", agent: null });
  expect(answererOf(run({ agent: "poet" }))).toEqual({ assistantId: "a", agent: { name: "poet" } });
});
