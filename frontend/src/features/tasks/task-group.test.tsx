import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ChildEvents, SessionContext, type Session, type ToolCall } from "@/features/chat";
import { LocaleProvider } from "@/i18n";
import { TooltipProvider } from "@/ui/tooltip";
import { TaskGroup } from "./task-group";

vi.mock("next/navigation", () => ({
  usePathname: () => "/chats/t",
  useSearchParams: () => new URLSearchParams(),
}));

const call = (id: string, given: Partial<ToolCall> = {}): ToolCall => ({
  id,
  name: "task",
  args: { description: `Part ${id}`, prompt: "Do it", subagent_type: "bash" },
  status: "running",
  result: "",
  images: [],
  output: "",
  ...given,
});
const event = (type: string, id: string, more: object = {}) => ({
  seq: 1,
  method: "custom",
  params: { namespace: [], timestamp: 0, data: { payload: { type, task_id: id, ...more } } },
});

function show(calls: ToolCall[]) {
  const childEvents = new ChildEvents();
  childEvents.add(calls.map(({ id }) => event("task_started", id, { namespace: [`tools:${id}`] })));
  const session = {
    threadId: "t",
    running: true,
    turns: [],
    interrupts: [],
    childEvents,
  } as unknown as Session;
  render(
    <LocaleProvider>
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <TooltipProvider>
          <SessionContext value={session}>
            <TaskGroup calls={calls} />
          </SessionContext>
        </TooltipProvider>
      </QueryClientProvider>
    </LocaleProvider>,
  );
  return childEvents;
}

const answered = async () => new Response("{}", { headers: { "Content-Type": "application/json" } });
beforeEach(() => void vi.stubGlobal("fetch", answered));
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it("stops one, and gives the focus of its button to the card", async () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    asked.push(url);
    return answered();
  });
  const events = show([call("a"), call("b")]);
  const stop = await screen.findByRole("button", { name: "Stop Part a" });
  stop.focus();
  fireEvent.click(stop);
  await waitFor(() => expect(asked.some((url) => url.endsWith("/api/threads/t/tasks/a/cancel"))).toBe(true));
  await waitFor(() => expect(document.activeElement).toBe(screen.getByTitle("Open what Part a did")));
  act(() =>
    events.add([event("task_cancelled", "a", { status: "cancelled", result: "Half of it", tokens: 1200 })]),
  );
  expect(screen.queryByRole("button", { name: "Stop Part a" })).toBeNull();
  expect(screen.getByText(/1\.2k tokens/)).toBeTruthy();
  expect(screen.getByRole("button", { name: "Stop Part b" })).toBeTruthy();
});

it("lists many, with how many of them are how, and counts what was deferred", async () => {
  const late = call("e", { status: "error", result: "Error: deferred: limit 3, ask again" });
  const events = show([call("a"), call("b"), call("c"), call("d"), late]);
  const tree = await screen.findByRole("button", { name: /4 sub-agents/ });
  act(() => events.add([event("task_failed", "a", { status: "failed", error: "No model" })]));
  await waitFor(() => expect(tree.textContent).toContain("3 working · 1 failed · 1 deferred"));
  fireEvent.click(tree);
  expect(screen.getAllByRole("listitem")).toHaveLength(4);
  expect(screen.getByText("Failed: No model")).toBeTruthy();
});
