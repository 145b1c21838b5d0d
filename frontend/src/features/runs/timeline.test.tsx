import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LocaleProvider } from "@/i18n";
import type { Span, Timeline as Found } from "@/lib/api";
import { onStep } from "@/lib/compose";
import { TooltipProvider } from "@/ui/tooltip";
import Timeline from "./timeline";

const span = (id: number, kind: Span["kind"], more: Partial<Span> = {}): Span => ({
  id,
  parent: null,
  run_id: "r",
  kind,
  name: kind,
  start_ms: id * 100,
  end_ms: id * 100 + 50,
  status: "success",
  detail: "",
  ...more,
});

const found = (spans: Span[], more: Partial<Found> = {}): Found => ({
  run_id: "r",
  thread_id: "t",
  trace_id: null,
  status: "success",
  stop_reason: "end_turn",
  started_at: "2026-01-01T00:00:00Z",
  duration_ms: 2000,
  elapsed_ms: 2000,
  cost: null,
  verification: null,
  runs: [],
  spans,
  truncated: false,
  forgotten: false,
  ...more,
});

const SPANS = [
  span(1, "queue", { end_ms: 300 }),
  span(7, "queue"), // 50 ms are no wait
  span(2, "model", {
    name: "m",
    first_token_ms: 230,
    input_tokens: 1200,
    output_tokens: 40,
    cached_tokens: 600,
    message_id: "m1",
  }),
  span(3, "tool", { name: "task", call_id: "c1" }),
  span(4, "agent", { parent: 3, detail: "Look closely", call_id: "c1" }),
  span(5, "tool", { parent: 4, name: "bash", detail: "ls", status: "error", exit_code: 3, call_id: "c2" }),
  span(6, "decision", { name: "bash", end_ms: null, status: "waiting", call_id: "c3" }),
];

let asked: string[][];
let shown: () => void;
let stop: () => void;

beforeEach(() => {
  asked = [];
  shown = vi.fn<() => void>();
  stop = onStep((ids) => {
    asked.push([...ids]);
    return ids.includes("c1");
  });
  // Without a layout nothing would be in sight.
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(800);
});
afterEach(() => {
  stop();
  vi.restoreAllMocks();
});

async function open(answer: Found) {
  const body = JSON.stringify(answer);
  vi.spyOn(globalThis, "fetch").mockImplementation(
    async () => new Response(body, { headers: { "content-type": "application/json" } }),
  );
  render(
    <LocaleProvider>
      <QueryClientProvider client={new QueryClient()}>
        <TooltipProvider>
          <Timeline threadId="t" runId="r" onClose={() => {}} onShown={shown} />
        </TooltipProvider>
      </QueryClientProvider>
    </LocaleProvider>,
  );
  await screen.findAllByRole("treeitem");
  return screen.getByRole("tree");
}

const words = (item: Element) => item.textContent.replace(/\s+/g, " ").trim();
const names = () => screen.getAllByRole("treeitem").map((item) => words(item));

it("each row says what it was, how long it took and what is known of it", async () => {
  await open(found(SPANS));
  expect(names()).toEqual([
    "Waiting to start 200ms",
    "m 50ms first token after 30ms, 1.2k tokens in, 40 out, 50% from cache",
    "Look closely agent 50ms 1 step inside",
    "Approval: bash waiting for you",
  ]);
});

it("the keyboard moves between rows, opens and closes them, and shows the step in the conversation", async () => {
  const tree = await open(found(SPANS));
  const press = (...pressed: string[]) => pressed.forEach((key) => fireEvent.keyDown(tree, { key }));
  const chosen = () => screen.getByRole("treeitem", { selected: true });
  fireEvent.focus(tree);
  expect(words(chosen())).toContain("Waiting to start");
  press("ArrowDown", "ArrowDown", "ArrowRight");
  expect(chosen().getAttribute("aria-expanded")).toBe("true");
  press("ArrowRight");
  expect(words(chosen())).toBe("bash ls 50ms failed, exit code 3");
  expect(tree.getAttribute("aria-activedescendant")).toBe(chosen().id);
  press("Enter");
  expect(asked).toEqual([["c2", "c1", "c1"]]);
  expect(shown).toHaveBeenCalledOnce();
  press("ArrowLeft");
  expect(words(chosen())).toContain("Look closely");
  press("ArrowLeft");
  expect(chosen().getAttribute("aria-expanded")).toBe("false");
  press("End");
  expect(words(chosen())).toContain("Approval");
  press("ArrowDown", "Home", "ArrowUp");
  expect(words(chosen())).toContain("Waiting to start");
});

it("a step that the conversation does not show leaves everything as it is", async () => {
  await open(found(SPANS));
  fireEvent.click(screen.getByRole("treeitem", { name: /Approval/ }));
  expect(asked).toEqual([["c3"]]);
  expect(shown).not.toHaveBeenCalled();
});

it("says that a very long run is cut short", async () => {
  await open(found(SPANS, { truncated: true }));
  expect(screen.getByText("This run is very long. Only its first 7 steps are shown.")).toBeTruthy();
});
