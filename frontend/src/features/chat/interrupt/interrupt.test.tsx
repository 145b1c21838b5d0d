import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import type { Interrupt } from "../thread/session";
import { renderChat, sessionWith, settings } from "../thread/test-session";
import InterruptCards from ".";

const ALL: Interrupt["calls"][number]["allowed"] = ["approve", "edit", "reject", "respond"];
const GRANTS: Interrupt["calls"][number]["grants"] = ["thread", "always"];
const call = (args: Record<string, unknown>, given: Partial<Interrupt["calls"][number]> = {}) => ({
  id: null,
  name: "deploy",
  args,
  description: "",
  reason: "",
  allowed: ALL,
  grants: GRANTS,
  sources: [],
  ...given,
});

async function show(
  calls: Interrupt["calls"],
  respond = vi.fn(async () => {}),
  value: unknown = { cosmetic: ["description", "timeout"] },
) {
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

  it("allows only calls that are like it in every argument", async () => {
    const args = {
      command: "git push origin",
      description: "Push",
      force: true,
      tags: ["a", { b: 1 }],
      to: "x",
    };
    const respond = await show([call(args)]);
    press("Only for calls like this…");
    fireEvent.change(screen.getByRole("textbox", { name: "command" }), { target: { value: "git push *" } });
    expect(screen.queryByRole("textbox", { name: "description" })).toBeNull();
    expect(screen.getByRole<HTMLInputElement>("textbox", { name: "force" }).value).toBe("true");
    fireEvent.click(
      within(screen.getByRole("radiogroup", { name: "to" })).getByRole("radio", { name: "Any" }),
    );
    expect(screen.getByText("description").parentElement!.textContent).toContain("Always any");
    press("Always");
    const pattern = { command: "git push *", force: "true", tags: '["a", {"b": 1}]', to: null };
    await answered(respond, [{ type: "approve", grant: "always", pattern }]);
  });

  it("asks about money in words", async () => {
    const facts = { setting: "spending.per_thread", unit: "tokens", limit: 6000, used: 5900 };
    const asked = { name: "spend_more", description: "Go on?", grants: [], allowed: ALL.slice(0, 1) };
    await show([call(facts, asked)]);
    expect(screen.getByText(/^The limit of 6,000 tokens for this chat is reached\. Go on\?/)).toBeTruthy();
    for (const raw of [/6000/, "spend_more"]) expect(screen.queryByText(raw)).toBeNull();
  });

  it("shows what would be sent where, a long body shortened", async () => {
    const body = Array.from({ length: 300 }, (_, i) => `line ${i}`).join("\n");
    const args = { url: "https://api.example.com/v1/items?q=1", method: "post", body, retries: 2 };
    await show([call(args, { name: "http_request" })]);
    const shown = screen.getByText("Request").parentElement!;
    expect(shown.textContent).toContain("POSTapi.example.com/v1/items?q=1");
    expect(shown.textContent).toContain("line 23");
    expect(shown.textContent).not.toContain("line 24");
    press("Show 276 more lines");
    expect(shown.textContent).toContain("line 299");
    expect(screen.getByText("retries").nextElementSibling?.textContent).toBe("2");
  });

  it("shows an address that is none as it is", async () => {
    await show([call({ url: "https://" }, { name: "http_request" })]);
    expect(screen.getByText("url").nextElementSibling?.textContent).toBe("https://");
  });

  it("says which pages, servers and files brought text from outside, the newest first", async () => {
    const pages = Array.from({ length: 5 }, (_, i) => ({
      kind: "page" as const,
      name: `https://www.site${i}.com/a`,
    }));
    await show([
      call(
        {},
        { sources: [...pages, { kind: "upload", name: "plan.pdf" }, { kind: "server", name: "jira" }] },
      ),
    ]);
    const items = screen.getAllByRole("listitem").map(({ textContent }) => textContent);
    expect(items).toEqual(["jira", "plan.pdf", "site4.com", "site3.com", "site2.com", "site1.com"]);
    press("and 1 more");
    expect(screen.getAllByRole("listitem")).toHaveLength(7);
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
    press("Reply for the tool");
    expect(screen.getByText("The tool isn’t run. The agent gets your reply in its place.")).toBeTruthy();
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Send answer" }).disabled).toBe(true);
    fireEvent.change(screen.getByRole("textbox"), { target: { value: "42" } });
    press("Send answer");
    await answered(respond, [{ type: "respond", message: "42" }]);
  });

  it("keeps the kinds of values when arguments are edited in the form", async () => {
    const respond = await show([call({ name: "web", count: 2, force: true, tags: ["a"] })]);
    press("Change");
    expect(document.activeElement).toBe(screen.getByLabelText("name"));
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
    expect(screen.queryByRole("button", { name: "Reply for the tool" })).toBeNull();
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

const pays = { changes: true, lasts: false, destination: "shop", server: "shop" };
const asked = (value: object, given: Partial<Interrupt["calls"][number]> = {}, args = {}) =>
  show([call(args, { name: "shop_pay", ...given })], undefined, value);

describe("what a card says", () => {
  it("has our headline, and the agent's words as such", async () => {
    const value = {
      effect: pays,
      cosmetic: ["description"],
      asked_by: { agent: "", subagent: "researcher" },
    };
    await asked(value, {}, { description: "List the files", amount: 5 });
    expect(screen.getByText(/^DeerFlow .* “pay” \(shop\) – .* to shop$/).closest("figure")).toBeNull();
    expect(screen.getByText("List the files").closest("figure")!.textContent).toContain(
      "In the agent’s words",
    );
    expect(screen.getByText(/Asked by the subagent researcher/)).toBeTruthy();
    expect(screen.queryByText("description")).toBeNull();
  });

  it("shows a description that is an argument as one", async () => {
    await asked({ effect: pays, cosmetic: [] }, {}, { description: "Pay 500" });
    expect(screen.getByText("description").nextElementSibling?.textContent).toBe("Pay 500");
    expect(screen.queryByText("In the agent’s words")).toBeNull();
    press("Only for calls like this…");
    expect(screen.getByRole("textbox", { name: "description" })).toBeTruthy();
  });

  it.each<[string, Record<string, unknown>, RegExp, RegExp]>([
    ["bash", { command: "ls\u202E; rm -rf x", cwd: "/a" }, /ls⟦U\+202E⟧; rm/, /cwd\/a/],
    [
      "str_replace",
      { path: "a\u200B.py", old_str: "x", new_str: "y\u2066", count: 2 },
      /y⟦U\+2066⟧/,
      /count2/,
    ],
    ["http", { url: "https://good:1@evil.example/\u3164", mode: "\u00AD" }, /good:1@/, /⟦U\+00AD⟧/],
  ])("marks what cannot be seen, and leaves out no argument of %s", async (name, args, ...seen) => {
    await show([call(args, { name })]);
    const card = screen.getByRole("alertdialog").textContent;
    for (const one of seen) expect(card).toMatch(one);
  });

  it("counts what it does not show, of one endless line too", async () => {
    await show([call({ command: `echo ok;${" ".repeat(5000)}rm -rf x` }, { name: "bash" })]);
    expect(screen.queryByText(/rm -rf x/)).toBeNull();
    press("Show 27 more lines");
    expect(screen.getByText(/rm -rf x/)).toBeTruthy();
  });

  it.each([
    [{ host: "a.example" }, "Let commands reach a.example?"],
    [{ host: "a.example", packages: true }, "Let this chat install packages, from a.example?"],
  ])("asks about a host, which is let in for the chat or not", async (args, question) => {
    const effect = { changes: false, lasts: false, destination: args.host, server: "" };
    const given = { name: "network", allowed: ["approve", "reject"] as typeof ALL };
    const respond = await asked({ effect }, given, args);
    expect(screen.getByText(question)).toBeTruthy();
    expect(screen.getByText(/every command in this chat may load from a.example/)).toBeTruthy();
    expect(screen.queryByRole("button", { name: /^(Always|Only for)/ })).toBeNull();
    press("Allow");
    await answered(respond, [{ type: "approve" }]);
  });

  it("says that a destination is open from then on, and what outlives the chat", async () => {
    await asked({ effect: { ...pays, changes: false } });
    expect(screen.getByText("If you allow it, this chat may send data to shop from now on.")).toBeTruthy();
    await asked({ effect: { ...pays, lasts: true, server: "", destination: "" } }, { name: "update_agent" });
    expect(await screen.findByText(/^DeerFlow wants to change the agent’s instructions/)).toBeTruthy();
  });

  it("shows a tool that was changed meanwhile beside what it was", async () => {
    const before = { description: "Pays.", arguments: ["to"] };
    const now = { description: "Pays all.\u202E", arguments: ["iban", "to"] };
    await asked({ effect: pays, changed: { before, now } });
    expect(screen.getByText(/This tool was changed by its server/)).toBeTruthy();
    expect(screen.getByText("Before").parentElement!.textContent).toContain("Pays.Arguments: to");
    expect(screen.getByText("Now").parentElement!.textContent).toContain(
      "Pays all.⟦U+202E⟧Arguments: iban, to",
    );
  });

  it("lets a source be trusted, after it has said what that means", async () => {
    const requests = vi.fn(async (_: string, _init?: RequestInit) => new Response(null, { status: 204 }));
    vi.stubGlobal("fetch", requests);
    await asked(
      {},
      {
        sources: [
          { kind: "chat", name: "t2" },
          { kind: "upload", name: "plan.pdf" },
        ],
      },
    );
    expect(screen.getByText("an earlier chat")).toBeTruthy();
    press("I trust plan.pdf");
    expect(screen.getByText(/may act on it without asking you/)).toBeTruthy();
    expect(requests).not.toHaveBeenCalled();
    press("I trust this");
    expect(await screen.findByText(/\(trusted\)/)).toBeTruthy();
    const [url, init] = requests.mock.calls[0]!;
    expect(url).toContain("/api/threads/t/sources/trust");
    expect(JSON.parse(init!.body as string)).toEqual({ kind: "upload", name: "plan.pdf" });
    vi.unstubAllGlobals();
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
