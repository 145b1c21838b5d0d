"use client";
import { useQuery } from "@tanstack/react-query";
import { runs as runsOf, type Model, type Run } from "./api";
import { draftThreadId } from "./draft-thread";
import { keys } from "./keys";
import { useModels } from "./models";
import { own, readStored, useStored, writeStored } from "./storage";

/** Settings of a new run. `modelName` null: the server's own choice. */
export interface RunSettings {
  modelName: string | null;
  mode: "flash" | "thinking" | "pro" | "ultra";
  effort: "minimal" | "low" | "medium" | "high" | null;
  /** Agent that answers; null is the default agent, undefined the one that answered last in the thread. */
  agent?: AgentChoice | null;
  /** Things that are switched off in the chat, see `useSwitches`. */
  off?: readonly string[];
  temporary?: boolean;
}

/** An agent of one's own. `setUp`: the conversation is about making it. */
export interface AgentChoice {
  name: string;
  setUp?: boolean;
}

export type Mode = RunSettings["mode"];
export type Effort = NonNullable<RunSettings["effort"]>;
export const MODES: readonly Mode[] = ["flash", "thinking", "pro", "ultra"];
export const EFFORTS: readonly Effort[] = ["minimal", "low", "medium", "high"];

/** Explicit choices only. */
export type Choice = Partial<RunSettings>;
interface Stored {
  device: Choice;
  threads: Record<string, Choice & { at: number }>;
}
const key = () => own("runSettings");
/** Nothing of this is the device's choice. */
const OF_THREAD = { agent: undefined, off: undefined, temporary: undefined };
const NOTHING: Stored = { device: {}, threads: {} };
/** Threads whose choice is remembered; of others the device's last one counts. */
const KEPT = 200;

interface Resolved {
  settings: RunSettings;
  /** Null: not known yet, or the server has none. */
  model: Model | null;
  /** A model that was chosen and is there no more. */
  gone: string | null;
}

/**
 * The thread's own choice, else the device's last one, else what suits the model. A chosen model that is gone is replaced
 * by the next in this order. Without `available` (not loaded yet) the choice is taken as it is. `ofAgent` is the model
 * that the thread's agent prefers: it counts more than what was chosen elsewhere. `usualMode` is the one administrators
 * have set for new chats.
 */
export function resolve(
  thread: Choice | undefined,
  device: Choice,
  available: readonly Model[] | undefined,
  ofAgent?: string | null,
  usualMode?: Mode | null,
): Resolved {
  const wishes = [thread?.modelName, ofAgent, device.modelName];
  const chosen = wishes.filter((name) => typeof name === "string");
  const found = chosen.find((name) => available?.some((model) => model.name === name));
  // The server's own choice is its first model; administrators may have set another one for new chats.
  const preset = available?.findIndex((one) => one.is_default) ?? 0;
  const modelName =
    (available ? (found ?? (preset > 0 ? available[preset]!.name : null)) : chosen[0]) ?? null;
  const model =
    available?.find((one) => (modelName ? one.name === modelName : one.is_default)) ?? available?.[0] ?? null;
  const gone = available && chosen[0] && chosen[0] !== found ? chosen[0] : null;

  const usual: Mode = !model || model.supports_thinking ? "pro" : "flash";
  const wanted = [thread?.mode, device.mode, usualMode].find((mode) => mode && MODES.includes(mode)) ?? usual;
  const mode = modesOf(model).includes(wanted) ? wanted : usual;
  const asked = [thread?.effort, device.effort].find((effort) => effort !== undefined) ?? null;
  const effort = takesEffort(model, mode) && asked && EFFORTS.includes(asked) ? asked : null;
  const { agent, off, temporary } = thread ?? {};
  return { settings: { modelName, mode, effort, agent, off, temporary }, model, gone };
}

/** The mode in which a thread was asked last; of programs that name none it is not known. */
const modeIn = (runs: readonly Run[]) =>
  runs
    .map(({ kwargs }) => (kwargs.context as { mode?: Mode } | null | undefined)?.mode)
    .find((mode) => mode && MODES.includes(mode));

export const modesOf = (model: Model | null) =>
  MODES.filter((mode) => mode !== "thinking" || !model || model.supports_thinking);

export const takesEffort = (model: Model | null, mode: Mode) =>
  mode !== "flash" && !!model?.supports_reasoning_effort;

/** Remembers it for the thread and, but for what is its own, as the device's last choice. */
export function choose(threadId: string, patch: Choice, now = Date.now()) {
  const { device, threads } = stored();
  const all = { ...threads, [threadId]: { ...threads[threadId], ...patch, at: now } };
  const newest = Object.entries(all).sort(([, one], [, other]) => other.at - one.at);
  writeStored<Stored>(key(), {
    device: { ...device, ...patch, ...OF_THREAD },
    threads: Object.fromEntries(newest.slice(0, KEPT)),
  });
}

/** Metadata of a thread that begins with these; null: none. */
export const notesOf = ({ off, temporary }: RunSettings) =>
  off?.length || temporary ? { switched_off: off ?? [], ...(temporary && { temporary }) } : null;

export function forgetChoice(threadId: string) {
  const { device, threads } = stored();
  if (!(threadId in threads)) return;
  const others = Object.entries(threads).filter(([id]) => id !== threadId);
  writeStored<Stored>(key(), { device, threads: Object.fromEntries(others) });
}

/** The current choice, and all options. For a new conversation `threadId` is null. */
export function useRunChoice(threadId: string | null, agentModel?: string | null) {
  const [kept] = useStored<Stored>(key(), NOTHING);
  const query = useModels();
  const id = threadId ?? draftThreadId();
  // As the session has loaded them. An existing chat keeps its mode, whatever the mode of new ones.
  const { data: runs = [] } = useQuery({
    queryKey: keys.runs(id),
    queryFn: () => runsOf(id),
    enabled: false,
  });
  const chosen = { mode: modeIn(runs), ...kept.threads?.[id] };
  const usualMode = runs.length ? null : query.data?.default_mode;
  const resolved = resolve(chosen, kept.device ?? {}, query.data?.models, agentModel, usualMode);
  return {
    ...resolved,
    query,
    models: query.data?.models ?? [],
    change: (patch: Choice) => choose(id, patch),
  };
}

/** Settings of a new run of this thread. */
export function useRunSettings(threadId: string | null): RunSettings {
  return useRunChoice(threadId).settings;
}

function stored(): Stored {
  const { device, threads } = readStored<Partial<Stored>>(key(), NOTHING);
  return { device: device ?? {}, threads: threads ?? {} };
}
