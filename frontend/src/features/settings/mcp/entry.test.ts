import { expect, test } from "vitest";
import { draftOf, entryOf, isReady } from "./draft";
import { MARK, parseServers, reachOf, toText, without, withTool, type Entry } from "./entry";

const problemOf = (text: string) => {
  const found = parseServers(text);
  return "problem" in found ? found.problem : null;
};

test("servers are found as other programs keep them", () => {
  const files = { command: "npx", args: ["-y", "files"] };
  for (const text of [
    { mcpServers: { files } },
    { mcp_servers: { files } },
    { servers: { files }, inputs: [] },
    { files },
  ])
    expect(parseServers(JSON.stringify(text))).toEqual({ servers: { files: { ...files, type: "stdio" } } });
  const web = { serverUrl: "https://example.org/mcp", disabled: true };
  expect(parseServers(JSON.stringify({ mcpServers: { web } }))).toEqual({
    servers: { web: { url: "https://example.org/mcp", enabled: false, type: "http" } },
  });
  const old = parseServers(
    '{"a": {"type": "streamableHttp", "url": "http://h"}, "b": {"type": "sse", "url": "http://h"}}',
  );
  expect("servers" in old && Object.values(old.servers).map((one) => one.type)).toEqual(["http", "sse"]);
});

test("what is wrong is named, with the server that it is about", () => {
  expect(problemOf('{"mcpServers": {')).toMatchObject({
    code: "notJson",
    detail: expect.any(String) as string,
  });
  for (const text of ["[]", "7", "null", "{}", '{"mcpServers": {}}'])
    expect(problemOf(text), text).toEqual({ code: "noServers" });
  expect(problemOf('{"command": "npx"}')).toEqual({ code: "nameless" });
  expect(problemOf('{"a": {"command": "x"}, "b": "npx"}')).toEqual({ code: "notAnEntry", name: "b" });
  expect(problemOf('{"mcpServers": {"b": {"args": []}}}')).toEqual({ code: "noWay", name: "b" });
  expect(problemOf('{"a/b": {"command": "x"}}')).toEqual({ code: "badName", name: "a/b" });
});

const KEPT: Entry = {
  enabled: false,
  type: "http",
  command: null,
  args: [],
  env: {},
  url: "https://example.org/mcp",
  headers: { "X-Key": MARK },
  oauth: { token_url: "https://a.example.org/token", client_id: "me", client_secret: MARK, audience: "x" },
  description: "Tickets",
  timeout: 7,
  tools: { drop: { policy: "deny" } },
};

test("a form that nobody touched keeps everything, marks and keys that it does not show included", () => {
  const again = entryOf(draftOf("tickets", KEPT), KEPT);
  const rest = without(KEPT, "command", "args", "env");
  expect(again).toEqual({
    ...rest,
    oauth: { ...rest.oauth, enabled: true, grant_type: "client_credentials" },
  });
});

test("a server is trusted by the form's switch and not by a text that is pasted", () => {
  const found = parseServers('{"web": {"url": "https://h", "trusted": true}}');
  expect(found).toEqual({ servers: { web: { url: "https://h", type: "http" } } });
  const trusted = { ...KEPT, trusted: true };
  expect(entryOf(draftOf("tickets", trusted), trusted).trusted).toBe(true);
  expect(entryOf({ ...draftOf("tickets", trusted), trusted: false }, trusted).trusted).toBeUndefined();
  expect(toText("tickets", trusted)).not.toContain("trusted");
});

test("a grant that the form does not show is sent back as it was", () => {
  const oauth = { grant_type: "refresh_token", refresh_token: MARK, token_url: "https://a.example.org" };
  expect(entryOf(draftOf("t", { ...KEPT, oauth }), { ...KEPT, oauth }).oauth).toEqual(oauth);
});

test("each kind of server asks for what it needs", () => {
  const empty = draftOf("", { type: "stdio" });
  expect(isReady({ ...empty, name: "files" })).toBe(false);
  expect(isReady({ ...empty, command: "npx" })).toBe(false);
  expect(isReady({ ...empty, name: "files", command: "npx" })).toBe(true);
  const web = { ...empty, name: "web", type: "http" as const };
  expect(isReady({ ...web, url: "ftp://example.org" })).toBe(false);
  expect(isReady({ ...web, url: "https://example.org" })).toBe(true);
  expect(isReady({ ...web, url: "https://example.org", access: "client" })).toBe(false);
  const program = entryOf({ ...empty, name: "files", command: " npx ", args: "-y\nfiles\n" }, KEPT);
  expect(program).toMatchObject({ type: "stdio", command: "npx", args: ["-y", "files"], timeout: 7 });
  expect(program.url).toBeUndefined();
});

test("what holds for a tool is written only where it is not the usual", () => {
  const asked = withTool({}, "drop", { enabled: true, policy: "ask" });
  expect(asked.tools).toEqual({ drop: { policy: "ask" } });
  expect(withTool(asked, "drop", { enabled: false, policy: null }).tools).toEqual({
    drop: { enabled: false },
  });
  expect(withTool(asked, "drop", { enabled: true, policy: null }).tools).toEqual({});
});

test("a text of an entry is one that can be pasted", () => {
  const text = toText("tickets", KEPT);
  expect(text).not.toContain("null");
  expect(parseServers(text)).toMatchObject({ servers: { tickets: { url: KEPT.url, oauth: KEPT.oauth } } });
  expect(toText("own", { url: "https://h", oauth: {} })).toContain('"oauth": {}');
});

test("the reach of a program is told whatever way it is written", () => {
  expect(reachOf({})).toEqual({ onHost: false, network: "internet", mounts: 0 });
  expect(reachOf({ network: { mode: "none" }, isolation: "host", mounts: [{}] })).toEqual({
    onHost: true,
    network: "none",
    mounts: 1,
  });
});
