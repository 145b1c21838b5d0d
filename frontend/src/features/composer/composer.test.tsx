import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ChildEvents, SessionContext, type Session } from "@/features/chat";
import { LocaleProvider } from "@/i18n";
import { ApiError } from "@/lib/http";
import { keys } from "@/lib/keys";
import { Toaster } from "@/ui/toast";
import { TooltipProvider } from "@/ui/tooltip";
import { Composer } from "./composer";
import { fillComposer } from "@/lib/compose";

vi.mock("next/navigation", () => ({
  usePathname: () => "/chats",
  useSearchParams: () => new URLSearchParams(),
  useRouter: () => ({ push: () => {} }),
}));

const said = (id: string, text: string) => ({
  id,
  question: { id, text, files: [], images: [], sending: false as const },
  steps: [],
  answer: null,
  presented: [],
  clarification: null,
  usage: null,
  runId: null,
  lastRunId: null,
  state: "done" as const,
  error: null,
  stopReason: null,
  verification: null,
  startedAt: null,
  endedAt: null,
  branch: null,
  marks: [],
  recalled: null,
});

function session(patch: Partial<Session> = {}): Session {
  const nothing = async () => {};
  return {
    threadId: "t1",
    phase: "ready",
    loadError: null,
    running: false,
    childEvents: new ChildEvents(),
    connection: "live",
    turns: [said("m1", "first"), said("m2", "second")],
    todos: [],
    title: null,
    interrupts: [],
    queued: [],
    retrying: null,
    silence: null,
    context: null,
    usage: null,
    agent: null,
    files: [],
    reload: () => {},
    send: vi.fn(nothing),
    steer: vi.fn(nothing),
    stop: vi.fn(nothing),
    cancelQueued: vi.fn(nothing),
    edit: nothing,
    regenerate: nothing,
    retryTurn: nothing,
    showBranch: nothing,
    respond: nothing,
    ...patch,
  };
}

let client: QueryClient;
beforeEach(() => {
  client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(keys.models, { models: [], token_usage: { enabled: true }, currency: null });
});
afterEach(() => vi.unstubAllGlobals());

const page = (now: Session): ReactNode => (
  <QueryClientProvider client={client}>
    <LocaleProvider>
      <TooltipProvider>
        <SessionContext value={now}>
          <Composer welcome={false} />
        </SessionContext>
      </TooltipProvider>
    </LocaleProvider>
  </QueryClientProvider>
);
const field = () => screen.getByLabelText<HTMLTextAreaElement>("Message");
const type = (text: string) => fireEvent.change(field(), { target: { value: text } });
const press = (key: string, more: object = {}) => fireEvent.keyDown(field(), { key, ...more });
const frame = () => act(() => new Promise((resolve) => requestAnimationFrame(() => resolve(undefined))));

const stubUploads = () => {
  const requests = vi.fn();
  vi.stubGlobal(
    "XMLHttpRequest",
    class {
      upload = {};
      open = requests;
      setRequestHeader() {}
      send() {}
      abort() {}
    },
  );
  return requests;
};

test("Enter sends, Shift+Enter and the Enter of an input method do not", async () => {
  const now = session();
  render(page(now));
  type("hello ");
  press("Enter", { shiftKey: true });
  press("Enter", { isComposing: true });
  press("Enter", { keyCode: 229 });
  expect(now.send).not.toHaveBeenCalled();
  press("Enter");
  await frame();
  const settings = { modelName: null, mode: "pro", effort: null };
  expect(now.send).toHaveBeenCalledExactlyOnceWith({ text: "hello", files: [] }, settings);
  expect(field().value).toBe("");
});

test("nothing is sent when there is nothing to say", () => {
  const now = session();
  render(page(now));
  type("  \n ");
  press("Enter");
  expect(now.send).not.toHaveBeenCalled();
  expect(screen.getByLabelText<HTMLButtonElement>("Send").disabled).toBe(true);
});

test("a message that could not be sent is back in its field", async () => {
  const now = session({ send: () => Promise.reject(new ApiError("No room.", 503, "full")) });
  render(page(now));
  type("precious");
  press("Enter");
  await waitFor(() => expect(field().value).toBe("precious"));
});

test("while the agent works, Enter waits for it and Ctrl+Enter tells it", async () => {
  const now = session({ running: true });
  render(page(now));
  type("later");
  press("Enter");
  await frame();
  type("now");
  press("Enter", { ctrlKey: true });
  await frame();
  expect(now.send).toHaveBeenCalledExactlyOnceWith({ text: "later", files: [] }, expect.anything());
  expect(now.steer).toHaveBeenCalledExactlyOnceWith("now");
});

test("what was meant for a run that ended meanwhile becomes a message of its own", async () => {
  const ended = () => Promise.reject(new ApiError("It has ended.", 409, "not_running"));
  const now = session({ running: true, steer: ended });
  render(page(now));
  type("quick");
  press("Enter", { metaKey: true });
  await waitFor(() => expect(now.send).toHaveBeenCalledWith({ text: "quick", files: [] }, expect.anything()));
});

test("a message that waits can be taken back or told at once", async () => {
  const queued = [{ runId: "r1", text: "waiting", files: [], state: "queued" as const }];
  const now = session({ running: true, queued });
  render(page(now));
  fireEvent.click(screen.getByLabelText("Don’t send"));
  await frame();
  expect(now.cancelQueued).toHaveBeenCalledExactlyOnceWith("r1");
  fireEvent.click(screen.getByText("Send now"));
  await frame();
  expect(now.steer).toHaveBeenCalledExactlyOnceWith("waiting");
});

test("what was said to the running agent says when it will be read, and cannot be taken back", () => {
  const queued = [{ runId: "m1", text: "in French", files: [], state: "told" as const }];
  render(page(session({ running: true, queued })));
  expect(screen.getByText("in French")).toBeTruthy();
  expect(screen.getByText("Sent – read at the next step")).toBeTruthy();
  expect(screen.queryByLabelText("Don’t send")).toBeNull();
  expect(screen.queryByText("Send now")).toBeNull();
});

test("the arrow keys recall own messages only from an empty field", async () => {
  render(page(session()));
  type("a draft");
  press("ArrowUp");
  expect(field().value).toBe("a draft");
  type("");
  press("ArrowUp");
  press("ArrowUp");
  await frame();
  expect(field().value).toBe("first");
  press("ArrowDown");
  press("ArrowDown");
  await frame();
  expect(field().value).toBe("");
});

test("a slash opens the commands, which the keyboard filters and runs", async () => {
  const now = session({ running: true });
  render(page(now));
  type("/");
  expect((await screen.findAllByRole("option")).length).toBeGreaterThan(4);
  type("/sto");
  expect(screen.getAllByRole("option")).toHaveLength(1);
  press("Enter");
  await frame();
  expect(now.stop).toHaveBeenCalledOnce();
  expect(field().value).toBe("");
  expect(now.send).not.toHaveBeenCalled();
  type("/he");
  press("Escape");
  expect(screen.queryByRole("option")).toBeNull();
});

test("a draft is there again after a reload", async () => {
  const { unmount } = render(page(session()));
  type("half a thought");
  unmount();
  render(page(session()));
  expect(field().value).toBe("half a thought");
});

test("the first message of a conversation keeps its field while the conversation comes to be", async () => {
  const now = session({ threadId: null, turns: [] });
  const { rerender } = render(page(now));
  const before = field();
  const id = sessionStorage.getItem("deerflow.draftThread")!;
  type("go");
  press("Enter");
  await frame();
  sessionStorage.setItem("deerflow.draftThread", "the-next-one");
  rerender(page(session({ threadId: id })));
  expect(field()).toBe(before);
});

test("a task that was picked is put in the field, its placeholder selected", async () => {
  render(page(session()));
  act(() => fillComposer("Look into [topic]"));
  await frame();
  expect(field().value).toBe("Look into [topic]");
  expect(field().value.slice(field().selectionStart, field().selectionEnd)).toBe("[topic]");
});

test("who types before the caret has been put somewhere keeps it where they type", async () => {
  render(page(session()));
  act(() => fillComposer("about tides"));
  type("/about tides");
  field().setSelectionRange(1, 1);
  await frame();
  expect(field().value).toBe("/about tides");
  expect(field().selectionStart).toBe(1);
});

const paste = (text: string) =>
  fireEvent.paste(field(), { clipboardData: { getData: () => text, items: [] } });

test("a long text that is pasted becomes a file, and can be put into the message instead", async () => {
  const requests = stubUploads();
  render(page(session()));
  expect(paste("x".repeat(2000))).toBe(true); // as the browser does it
  type("before");
  const long = `${"y".repeat(2000)}\n`;
  expect(paste(long)).toBe(false);
  expect(field().value).toBe("before");
  expect(await screen.findByText("pasted-text.txt")).toBeTruthy();
  expect(requests).toHaveBeenCalledWith("POST", "/api/threads/t1/uploads");
  fireEvent.click(screen.getByRole("button", { name: "Put it into the message instead" }));
  await waitFor(() => expect(field().value).toBe(`before\n${long}`));
  expect(screen.queryByText("pasted-text.txt")).toBeNull();
});

test("a text that would make the field slow stays a file", async () => {
  stubUploads();
  render(page(session()));
  expect(paste("x".repeat(1 << 20))).toBe(false);
  expect(field().value).toBe("");
  expect(await screen.findByText("pasted-text.txt")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Put it into the message instead" })).toBeNull();
});

test("of too many files, one notice says how many were taken", async () => {
  stubUploads();
  render(
    <>
      {page(session())}
      <LocaleProvider>
        <Toaster />
      </LocaleProvider>
    </>,
  );
  const files = Array.from({ length: 200 }, (_, i) => new File(["x"], `photo-${i}.jpg`));
  fireEvent.change(screen.getByLabelText("Add files", { selector: "input" }), { target: { files } });
  expect(await screen.findByText("20 of 200 files added: the limit is 20 per message.")).toBeTruthy();
  expect(screen.getAllByText(/the limit is/)).toHaveLength(1);
  expect(screen.getAllByText(/photo-\d+\.jpg/)).toHaveLength(20);
});
