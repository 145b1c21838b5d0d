import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { renderHook } from "@testing-library/react";
import { createElement, type ReactNode } from "react";
import { expect, test } from "vitest";
import type { Model } from "@/lib/api";
import { keys } from "@/lib/keys";
import { readStored } from "@/lib/storage";
import { choose, notesOf, resolve, useRunSettings, type Choice } from "./run-settings";

const model = (name: string, abilities: Partial<Model> = {}): Model => ({
  name,
  model: name,
  display_name: name.toUpperCase(),
  description: null,
  supports_thinking: true,
  supports_reasoning_effort: true,
  supports_vision: false,
  context_window: null,
  is_default: false,
  discovered_from: null,
  missing: [],
  problem: null,
  rest: null,
  ...abilities,
});
const smart = model("smart", { is_default: true });
const plain = model("plain", { supports_thinking: false, supports_reasoning_effort: false });
const settings = (thread: Choice | undefined, device: Choice, models?: Model[]) =>
  resolve(thread, device, models).settings;

test("the thread's own choice counts more than the device's last one", () => {
  const chosen = settings({ modelName: "plain", mode: "flash" }, { modelName: "smart", mode: "ultra" }, [
    smart,
    plain,
  ]);
  expect(chosen).toMatchObject({ modelName: "plain", mode: "flash" });
  expect(settings({ mode: "flash" }, { modelName: "plain" }, [smart, plain]).modelName).toBe("plain");
});

test("without any choice the server's default model works, as well as it can", () => {
  expect(settings(undefined, {}, [smart, plain])).toEqual({ modelName: null, mode: "pro", effort: null });
  expect(settings(undefined, { modelName: "plain" }, [smart, plain]).mode).toBe("flash");
});

test("a model that is gone is replaced by the next choice, and named", () => {
  const {
    settings: now,
    gone,
    model: used,
  } = resolve({ modelName: "old" }, { modelName: "plain" }, [smart, plain]);
  expect([now.modelName, gone, used?.name]).toEqual(["plain", "old", "plain"]);
  expect(resolve({ modelName: "old" }, {}, [smart, plain])).toMatchObject({
    settings: { modelName: null },
    gone: "old",
  });
});

test("until the models are known nothing is taken from the person's choice", () => {
  const { settings: now, gone } = resolve({ modelName: "old", mode: "thinking" }, {}, undefined);
  expect([now.modelName, now.mode, gone]).toEqual(["old", "thinking", null]);
});

test("a model is never asked for what it cannot do", () => {
  const wish: Choice = { modelName: "plain", mode: "thinking", effort: "high" };
  expect(settings(wish, {}, [smart, plain])).toEqual({ modelName: "plain", mode: "flash", effort: null });
  const hurried: Choice = { modelName: "smart", mode: "flash", effort: "high" };
  expect(settings(hurried, {}, [smart, plain]).effort).toBeNull();
  expect(settings({ ...hurried, mode: "pro" }, {}, [smart]).effort).toBe("high");
});

test("damaged storage does no harm", () => {
  const broken = { mode: "turbo", effort: 7, modelName: 3 } as unknown as Choice;
  expect(settings(broken, broken, [smart])).toEqual({ modelName: null, mode: "pro", effort: null });
});

test("a choice is remembered for its thread and for the device, and old threads are forgotten", () => {
  for (let number = 0; number < 250; number += 1) choose(`t${number}`, { mode: "flash" }, number);
  choose("t249", { modelName: "smart" }, 300);
  const kept = readStored<{ device: Choice; threads: Record<string, Choice> }>("runSettings", {
    device: {},
    threads: {},
  });
  expect(kept.device).toEqual({ mode: "flash", modelName: "smart" });
  expect(kept.threads.t249).toMatchObject({ mode: "flash", modelName: "smart" });
  expect(Object.keys(kept.threads)).toHaveLength(200);
  expect(kept.threads.t0).toBeUndefined();
});

test("an agent is chosen for its thread alone; its model counts more than the device's, and less than the thread's", () => {
  choose("with-agent", { agent: { name: "poet" }, mode: "flash" });
  const kept = readStored<{ device: Choice; threads: Record<string, Choice> }>("runSettings", {
    device: {},
    threads: {},
  });
  expect(kept.threads["with-agent"]?.agent).toEqual({ name: "poet" });
  expect(kept.device.agent).toBeUndefined();
  const models = [smart, plain];
  const of = (thread?: Choice) => resolve(thread, { modelName: "smart" }, models, "plain").settings.modelName;
  expect(of()).toBe("plain");
  expect(of({ modelName: "smart" })).toBe("smart");
});

test("what administrators set for new chats holds until someone picks their own", () => {
  const preset = [{ ...smart, is_default: false }, model("other", { is_default: true })];
  const of = (device: Choice) => resolve(undefined, device, preset, null, "ultra").settings;
  expect(of({})).toMatchObject({ modelName: "other", mode: "ultra" });
  expect(of({ modelName: "smart", mode: "flash" })).toMatchObject({ modelName: "smart", mode: "flash" });
});

test("a chat that has begun keeps its mode, whatever new ones begin with and other chats chose", () => {
  localStorage.clear();
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  client.setQueryData(keys.models, { models: [smart], default_mode: "ultra" });
  const ran = (...modes: (string | undefined)[]) =>
    modes.map((mode) => ({ kwargs: mode ? { context: { mode } } : {} }));
  client.setQueryData(keys.runs("asked"), ran(undefined, "flash", "pro"));
  client.setQueryData(keys.runs("of-a-program"), ran(undefined));
  const wrapper = ({ children }: { children: ReactNode }) =>
    createElement(QueryClientProvider, { client }, children);
  const mode = (thread: string) => renderHook(() => useRunSettings(thread), { wrapper }).result.current.mode;
  expect([mode("asked"), mode("of-a-program"), mode("new")]).toEqual(["flash", "pro", "ultra"]);
  choose("elsewhere", { mode: "thinking" });
  expect([mode("asked"), mode("new")]).toEqual(["flash", "thinking"]);
  choose("asked", { mode: "ultra" });
  expect(mode("asked")).toBe("ultra");
});

test("what one chat does without is no choice for the next, and begins its thread", () => {
  localStorage.clear();
  choose("t1", { mode: "flash", off: ["web"], temporary: true });
  const { device, threads } = readStored<{ device: Choice; threads: Record<string, Choice> }>("runSettings", {
    device: {},
    threads: {},
  });
  expect(device).toEqual({ mode: "flash" });
  const now = settings(threads.t1, device);
  expect(notesOf(now)).toEqual({ switched_off: ["web"], temporary: true });
  expect(notesOf(settings(undefined, device))).toBeNull();
});
