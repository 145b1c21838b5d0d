import { fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { callWith, renderChat, sessionWith, settings, turnWith } from "./thread/test-session";
import { TurnView, Working } from "./turn";
import type { Part, Turn } from "./thread/turns";

const view = (turn: Turn, busy = false) => <TurnView turn={turn} place={place} last busy={busy} />;
/** A draft that a test leaves is none of the next. */
let place = "";
beforeEach(() => void (place = crypto.randomUUID()));
const tool = (id: string, given: Parameters<typeof callWith>[0]): Part => ({
  kind: "tool",
  id,
  call: callWith({ id, ...given }),
});

describe("steps", () => {
  const steps = [
    tool("1", { name: "read_file", args: { path: "/a" } }),
    tool("2", { args: { command: "ls" } }),
    tool("3", { args: { command: "make" }, result: "Exit Code: 2" }),
  ];

  it("are one line when all is done, with what failed, and open", () => {
    const done = { startedAt: "2026-01-01T00:00:00Z", endedAt: "2026-01-01T00:00:12Z" };
    renderChat(view(turnWith({ steps, ...done })));
    const line = screen.getByRole("button", { expanded: false });
    expect(line.textContent).toContain("Read a file, ran 2 commands · 12s");
    expect(line.textContent).toContain("1 failed");
    fireEvent.click(line);
    expect(screen.getByText("make")).toBeTruthy();
  });

  it("show the one that runs, and the former ones as a line", async () => {
    const running = tool("4", { status: "running", args: { command: "sleep 9" }, output: "waiting" });
    renderChat(view(turnWith({ state: "running", steps: [...steps.slice(0, 2), running] }), true));
    expect(await screen.findByText("waiting")).toBeTruthy();
    expect(screen.getByText(/Read a file, ran a command/)).toBeTruthy();
  });
});

describe("editing a message", () => {
  const open = (edit = vi.fn(async () => {})) => {
    renderChat(view(turnWith({})), sessionWith({ edit }));
    fireEvent.click(screen.getByRole("button", { name: "Edit message" }));
    return { edit, field: screen.getByRole("textbox", { name: "Your message" }) };
  };

  it("sends with ⌘Enter or Ctrl Enter, not with Enter alone", async () => {
    const { edit, field } = open();
    expect(document.activeElement).toBe(field);
    fireEvent.change(field, { target: { value: "Do that " } });
    fireEvent.keyDown(field, { key: "Enter" });
    expect(edit).not.toHaveBeenCalled();
    fireEvent.keyDown(field, { key: "Enter", ctrlKey: true });
    await waitFor(() => expect(edit).toHaveBeenCalledExactlyOnceWith("q1", "Do that", settings));
    await waitFor(() => expect(screen.queryByRole("textbox")).toBeNull());
  });

  it("leaves keys to the input method while it composes", () => {
    const { edit, field } = open();
    fireEvent.keyDown(field, { key: "Enter", ctrlKey: true, isComposing: true });
    fireEvent.keyDown(field, { key: "Enter", metaKey: true, keyCode: 229 });
    fireEvent.keyDown(field, { key: "Escape", isComposing: true });
    expect(edit).not.toHaveBeenCalled();
    expect(screen.getByRole("textbox")).toBeTruthy();
  });

  it("ends with Escape and tells nobody else of it, since Escape also stops runs", () => {
    const outside = vi.fn();
    window.addEventListener("keydown", outside);
    const { edit, field } = open();
    fireEvent.keyDown(field, { key: "Escape" });
    expect(screen.queryByRole("textbox")).toBeNull();
    expect(screen.getByText("Do it")).toBeTruthy();
    expect(edit).not.toHaveBeenCalled();
    expect(outside.mock.calls.every(([event]) => (event as KeyboardEvent).defaultPrevented)).toBe(true);
    window.removeEventListener("keydown", outside);
  });

  it("stays open with the text when it fails", async () => {
    const { field } = open(vi.fn(async () => Promise.reject(new Error("gone"))));
    fireEvent.change(field, { target: { value: "New" } });
    fireEvent.click(screen.getByRole("button", { name: /^Send/ }));
    await screen.findByText(/gone/);
    expect((field as HTMLTextAreaElement).value).toBe("New");
  });
});

describe("a question of the agent", () => {
  const clarification = {
    callId: "c",
    question: "Which?",
    context: "Two ways",
    kind: "approach_choice",
    options: [
      { label: "Red", description: "" },
      { label: "Blue", description: "Calm" },
    ],
    answer: null,
  };

  it("is answered with one press", async () => {
    const send = vi.fn(async () => {});
    renderChat(view(turnWith({ clarification })), sessionWith({ send }));
    fireEvent.click(screen.getByRole("button", { name: /^2?\s*Blue\s*Calm/ }));
    await waitFor(() => expect(send).toHaveBeenCalledExactlyOnceWith({ text: "Blue" }, settings));
  });

  it("cannot be answered twice", () => {
    renderChat(view(turnWith({ clarification: { ...clarification, answer: "Yes" } })));
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Red" }).disabled).toBe(true);
  });
});

describe("the end of a turn", () => {
  it("tells in our words that the model is asked again, or another one", () => {
    const working = (retrying: { reason: string; fallback: string }) => (
      <Working runId={null} startedAt={null} connection="live" retrying={retrying} silence={null} />
    );
    renderChat(working({ reason: "broken_off", fallback: "" }));
    expect(screen.getByText("The answer broke off. Trying again…")).toBeTruthy();
    renderChat(working({ reason: "auth", fallback: "terra-1" }));
    expect(screen.getByText("Switching to the model terra-1…")).toBeTruthy();
  });

  it("says what went wrong in few words, keeps the details closed, and tries again", async () => {
    const retryTurn = vi.fn(async () => {});
    const error = { name: "auth", message: "The provider rejected the API key for m: check OPENAI_API_KEY" };
    const answer = { id: "a", text: error.message, streaming: false };
    renderChat(view(turnWith({ state: "error", error, answer })), sessionWith({ retryTurn }));
    expect(await screen.findByText("The provider rejected the API key")).toBeTruthy();
    expect(screen.queryByText(/OPENAI_API_KEY/)).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: "Details" }));
    expect(screen.getByText(/OPENAI_API_KEY/)).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Try again" }));
    await waitFor(() => expect(retryTurn).toHaveBeenCalledExactlyOnceWith("q1", settings));
  });

  it("marks what was stopped, keeps it, and goes on only when asked to", async () => {
    const session = sessionWith();
    const stopped = turnWith({
      state: "stopped",
      answer: { id: "a", text: "Half an ans", streaming: false },
    });
    renderChat(view(stopped), session);
    expect(screen.getByText("Half an ans")).toBeTruthy();
    expect(screen.getByText("Stopped. The work so far is saved.")).toBeTruthy();
    expect(session.send).not.toHaveBeenCalled();
    fireEvent.click(screen.getByRole("button", { name: "Continue" }));
    const words = { text: "Continue where you left off." };
    await waitFor(() => expect(session.send).toHaveBeenCalledExactlyOnceWith(words, settings));
  });

  it("offers to go on at the end of the conversation alone", () => {
    renderChat(<TurnView turn={turnWith({ state: "stopped" })} place={place} last={false} busy={false} />);
    expect(screen.queryByRole("button", { name: "Continue" })).toBeNull();
  });

  it("switches between branches, which are in sight without a pointer above them", async () => {
    const showBranch = vi.fn(async () => {});
    renderChat(view(turnWith({ branch: { index: 1, count: 3 } })), sessionWith({ showBranch }));
    expect(screen.getByText("2 / 3").closest('[class*="opacity-0"]')).toBeNull();
    expect(screen.getByRole("button", { name: "Edit message" }).closest('[class*="opacity-0"]')).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Earlier version" }));
    await waitFor(() => expect(showBranch).toHaveBeenCalledExactlyOnceWith("q1", 0));
  });
});

describe("an answer that ended too early", () => {
  it.each([
    ["length", "The answer was cut off", "Continue", "Continue exactly where you left off."],
    ["content_filter", "The provider cut off the answer", "Continue anyway", "Continue where you left off."],
    [
      "loop",
      "Stopped: the agent was going in circles",
      "Continue anyway",
      "Continue, but try a different approach.",
    ],
  ] as const)("says so, and goes on with one press: %s", async (stopReason, title, button, words) => {
    const session = sessionWith();
    renderChat(view(turnWith({ stopReason, answer: { id: "a", text: "Half", streaming: false } })), session);
    expect(await screen.findByText(title)).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: button }));
    await vi.waitFor(() => expect(session.send).toHaveBeenCalledExactlyOnceWith({ text: words }, settings));
  });
});

it("the option that was chosen is marked", () => {
  const clarification = {
    callId: "c",
    question: "Which?",
    context: "",
    kind: "",
    options: [
      { label: "Red", description: "" },
      { label: "Blue", description: "Calm" },
    ],
    answer: "Blue",
  };
  renderChat(
    view(
      turnWith({
        clarification,
        steps: [{ kind: "text", id: "t", text: "Before I begin:", streaming: false }],
      }),
    ),
  );
  expect(screen.getByRole("button", { pressed: true }).textContent).toContain("Blue");
  expect(screen.getByText("Before I begin:")).toBeTruthy();
});

it("the line below says for how long the model has been silent", () => {
  renderChat(<Working runId={null} startedAt={null} connection="live" retrying={null} silence={30} />);
  expect(screen.getByText(/Waiting for the model, 30/)).toBeTruthy();
});

it.each([
  ["now", "Sending…"],
  ["accepted", "Sent. Waiting for the agent…"],
  ["offline", "Not sent yet: can’t reach the server. It’ll be sent when you’re back online."],
] as const)("a message on its way says what it waits for: %s", (sending, words) => {
  const question = { id: "q1", text: "Do it", files: [], images: [], sending };
  renderChat(view(turnWith({ question, state: "running" }), true));
  expect(screen.getByText(words).getAttribute("role")).toBe("status");
});

it("of commands in one reply the one that runs is open, and those that wait are one line each", async () => {
  const steps = ["a", "b", "c"].map((name) =>
    tool(name, { status: "running", args: { command: `make ${name}` }, output: name === "a" ? "ready" : "" }),
  );
  renderChat(view(turnWith({ state: "running", steps }), true));
  expect(await screen.findByText("ready")).toBeTruthy();
  expect(screen.getAllByRole("button", { expanded: true })).toHaveLength(1);
  for (const name of ["b", "c"]) expect(screen.getAllByText(`make ${name}`)).toHaveLength(1);
});
