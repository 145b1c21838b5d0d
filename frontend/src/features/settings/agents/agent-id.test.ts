import { describe, expect, it } from "vitest";
import { agentId } from "./agent-id";

describe("the id of an agent", () => {
  it.each([
    ["editor", "editor"],
    ["Éditeur", "editeur"],
    ["My Editor!", "my-editor"],
    ["研究员", "my-agent"],
    ["研究员 Éva", "eva"],
    ["  ", "my-agent"],
    ["x".repeat(80), "x".repeat(61)],
  ])("of %s is %s", (name, id) => expect(agentId(name, [])).toBe(id));

  it("is free, unless the name itself is the id", () => {
    expect(agentId("研究员", ["my-agent", "my-agent-2"])).toBe("my-agent-3");
    expect(agentId("editor", ["editor"])).toBe("editor");
  });
});
