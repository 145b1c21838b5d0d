import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import type { Interrupt } from "../session";
import { renderChat, sessionWith, settings } from "../test-session";
import InterruptCards from ".";

const ALL: Interrupt["calls"][number]["allowed"] = ["approve", "edit", "reject", "respond"];
const GRANTS: Interrupt["calls"][number]["grants"] = ["thread", "always"];
const call = (args: Record<string, unknown>, given: Partial<Interrupt["calls"][number]> = {}) => ({
  id: null,
  name: "deploy",
  args,
  description: "",
  allowed: ALL,
  grants: GRANTS,
  sources: [],
  ...given,
});

async function show(calls: Interrupt["calls"], respond = vi.fn(async () => {}), value: unknown = {}) {
  renderChat(
    <InterruptCards />,
    sessionWith({ interrupts: [{ id: "i", value, problem: null, calls }], respond }),
  );
  await screen.findAllByRole("alertdialog");
  return respond;
}
const press = (name: string | RegExp, at = 0) =>
  fireEvent.click(screen.getAllByRole("button", { name })[at]!);
const answered = (respond: unknown, decisions: unknown[]) =>
  waitFor(() => expect(respond).toHaveBeenCalledExactlyOnceWith("i", { decisions }, settings));

describe("a decision about one call", () => {
  it("allows with one press", async () => {
    const respond = await show([call({ to: "prod" })]);
    press("Allow");
    await answered(respond, [{ type: "approve" }]);
    expect(screen.getByText("Sending your decision…")).toBeTruthy();
  });

  it("allows what follows, too", async () => {
    const respond = await show([call({ to: "prod" })]);
    press("In this chat");
    await answered(respond, [{ type: "approve", grant: "thread" }]);
  });

  it("allows only calls that are like it", async () => {
    const respond = await show([call({ command: "git push origin", description: "Push", force: true })]);
    press("Only like this…");
    fireEvent.change(screen.getByRole("textbox", { name: "command" }), { target: { value: "git push *" } });
    expect(screen.queryByRole("textbox", { name: "description" })).toBeNull();
    press("Always");
    await answered(respond, [{ type: "approve", grant: "always", pattern: { command: "git push *" } }]);
  });

  it("asks about money in words", async () => {
    const description = "Go on, although the limit of 6,000 tokens per thread is reached?";
    await show([
      call({ limit: 6000 }, { name: "spend_more", description, grants: [], allowed: ["approve", "reject"] }),
    ]);
    expect(screen.getByText(description)).toBeTruthy();
    expect(screen.queryByText(/6000/)).toBeNull();
    expect(screen.queryByText("spend_more")).toBeNull();
  });

  it("shows what would be sent where, a long body shortened", async () => {
    const body = Array.from({ length: 300 }, (_, i) => `line ${i}`).join("\n");
    const args = { url: "https://api.example.com/v1/items?q=1", method: "post", body, retries: 2 };
    await show([call(args, { name: "http_request" })]);
    const shown = screen.getByText("Request").parentElement!;
    expect(shown.textContent).toContain("POSTapi.example.com/v1/items?q=1");
    expect(shown.textContent).toContain("line 119");
    expect(shown.textContent).not.toContain("line 120");
    expect(shown.textContent).toContain('"retries": 2');
  });

  it("shows an address that is none as it is", async () => {
    await show([call({ url: "https://" }, { name: "http_request" })]);
    expect(screen.getByText(/"url": "https:\/\/"/)).toBeTruthy();
  });

  it("says which pages, servers and files brought text from outside, the newest first", async () => {
    const pages = Array.from({ length: 5 }, (_, i) => ({
      kind: "page" as const,
      name: `https://www.site${i}.com/a`,
    }));
    await show([
      call({}, { sources: [...pages, { kind: "file", name: "plan.pdf" }, { kind: "server", name: "jira" }] }),
    ]);
    const items = screen.getAllByRole("listitem").map(({ textContent }) => textContent);
    expect(items).toEqual(["jira", "plan.pdf", "site4.com", "site3.com", "site2.com", "site1.com"]);
    expect(screen.getByText("and 1 more")).toBeTruthy();
    expect(screen.getByRole("link", { name: "site4.com" }).getAttribute("rel")).toContain("noreferrer");
  });

  it("refuses with a note, or without one", async () => {
    const respond = await show([call({})]);
    press("Don’t allow");
    fireEvent.change(screen.getByRole("textbox"), { target: { value: "  Not on Friday " } });
    press("Don’t allow");
    await answered(respond, [{ type: "reject", message: "Not on Friday" }]);
  });

  it("answers in place of the tool", async () => {
    const respond = await show([call({})]);
    press("Answer instead");
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Send answer" }).disabled).toBe(true);
    fireEvent.change(screen.getByRole("textbox"), { target: { value: "42" } });
    press("Send answer");
    await answered(respond, [{ type: "respond", message: "42" }]);
  });

  it("keeps the kinds of values when arguments are edited in the form", async () => {
    const respond = await show([call({ name: "web", count: 2, force: true, tags: ["a"] })]);
    press("Change");
    fireEvent.change(screen.getByLabelText("name"), { target: { value: "api" } });
    fireEvent.change(screen.getByLabelText("count"), { target: { value: "x" } });
    press("Allow with changes");
    expect(screen.getByRole("alert").textContent).toContain("count");
    expect(respond).not.toHaveBeenCalled();
    fireEvent.change(screen.getByLabelText("count"), { target: { value: "3" } });
    fireEvent.click(screen.getByLabelText("force"));
    fireEvent.change(screen.getByLabelText("tags"), { target: { value: '["b"]' } });
    press("Allow with changes");
    const args = { name: "api", count: 3, force: false, tags: ["b"] };
    await answered(respond, [{ type: "edit", edited_action: { name: "deploy", args } }]);
  });

  it("takes edited JSON, but only an object", async () => {
    const respond = await show([call({ a: 1 })]);
    press("Change");
    fireEvent.click(screen.getByRole("radio", { name: "JSON" }));
    fireEvent.change(screen.getByRole("textbox"), { target: { value: "[1]" } });
    press("Allow with changes");
    expect(screen.getByRole("alert")).toBeTruthy();
    fireEvent.change(screen.getByRole("textbox"), { target: { value: '{"b": 2}' } });
    press("Allow with changes");
    await answered(respond, [{ type: "edit", edited_action: { name: "deploy", args: { b: 2 } } }]);
  });

  it("offers only what is allowed", async () => {
    await show([call({}, { allowed: ["approve", "reject"] })]);
    expect(screen.queryByRole("button", { name: "Change" })).toBeNull();
    expect(screen.queryByRole("button", { name: "Answer instead" })).toBeNull();
  });

  it("says when it did not arrive, and can be sent again", async () => {
    const respond = vi.fn(async () => {});
    respond.mockRejectedValueOnce(new Error("no network"));
    await show([call({})], respond);
    press("Allow");
    await screen.findByText(/no network/);
    press("Send decision");
    await waitFor(() => expect(respond).toHaveBeenCalledTimes(2));
  });
});

describe("several calls in one interrupt", () => {
  const calls = [call({ n: 1 }), call({ n: 2 }, { name: "bash", args: { command: "rm -r x" } })];

  it("are answered together, in their order", async () => {
    const respond = await show(calls);
    press("Don’t allow", 1);
    press("Don’t allow", 1);
    const send = screen.getByRole<HTMLButtonElement>("button", { name: "Send 2 decisions" });
    expect(send.disabled).toBe(true);
    press("Allow");
    expect(respond).not.toHaveBeenCalled();
    fireEvent.click(send);
    await answered(respond, [{ type: "approve" }, { type: "reject" }]);
  });

  it("can all be allowed at once, without overriding what was decided", async () => {
    const respond = await show(calls);
    press("Don’t allow");
    press("Don’t allow");
    press("Allow all");
    await answered(respond, [{ type: "reject" }, { type: "approve" }]);
  });
});

it("takes a free answer to an interrupt of another shape", async () => {
  const respond = await show([], undefined, "Which colour?");
  const card = within(screen.getByRole("alertdialog"));
  expect(card.getByText("Which colour?")).toBeTruthy();
  fireEvent.change(card.getByRole("textbox"), { target: { value: "blue" } });
  press("Send answer");
  await waitFor(() => expect(respond).toHaveBeenCalledWith("i", "blue", settings));
});

it("does not take the focus from somebody who writes", async () => {
  const field = document.body.appendChild(document.createElement("textarea"));
  field.value = "half a message";
  field.focus();
  await show([call({})]);
  expect(document.activeElement).toBe(field);
  field.remove();
});
