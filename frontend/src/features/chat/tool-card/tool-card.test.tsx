import { fireEvent, screen } from "@testing-library/react";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { callWith, renderChat, sessionWith } from "../thread/test-session";
import { ToolCard } from ".";

const row = () => screen.getByRole("button", { expanded: false });

describe("ToolCard", () => {
  beforeAll(async () => {
    const { unmount } = renderChat(
      <ToolCard current call={callWith({ status: "running", output: "loaded" })} />,
    );
    await screen.findByText("loaded");
    unmount();
  });

  it("shows an error without opening", () => {
    renderChat(
      <ToolCard
        call={callWith({
          name: "read_file",
          args: { path: "/mnt/user-data/x.md" },
          result: "Error: File not found: /mnt/user-data/x.md",
        })}
      />,
    );
    expect(row().textContent).toContain("Read x.md");
    expect(screen.getByText("File not found: /mnt/user-data/x.md")).toBeTruthy();
  });

  it("words a failure by its cause, and one that is not known as the server does", async () => {
    const cause = { code: "denied", detail: "the policy says no" };
    const failed = callWith({ name: "deploy", status: "error", result: "Error: not made.", cause });
    const { unmount } = renderChat(<ToolCard call={failed} />);
    expect(await screen.findByText("Not allowed here: the policy says no")).toBeTruthy();
    unmount();
    renderChat(<ToolCard call={{ ...failed, cause: { ...cause, code: "newer" } }} />);
    expect(await screen.findByText("not made.")).toBeTruthy();
  });

  it("says in words what a command is for, its exit code, and its last line when it failed", () => {
    renderChat(
      <ToolCard
        call={callWith({
          args: { description: "Run the tests", command: "pytest -q" },
          result: "1 failed\nExit Code: 1",
        })}
      />,
    );
    expect(row().textContent).toContain("Run the tests");
    expect(row().textContent).toContain("pytest -q");
    expect(row().textContent).toContain("Exit code 1");
    expect(screen.getByText("1 failed")).toBeTruthy();
  });

  it("shows live output with colours while the command runs, and closes when one wants", () => {
    renderChat(
      <ToolCard
        current
        call={callWith({ status: "running", args: { command: "make" }, output: "\u001b[32mok\u001b[0m" })}
      />,
    );
    expect(screen.getByText("ok").className).toContain("text-success");
    fireEvent.click(screen.getByRole("button", { expanded: true }));
    expect(screen.queryByText("ok")).toBeNull();
  });

  it("keeps what a stopped command had printed", () => {
    renderChat(
      <ToolCard call={callWith({ status: "stopped", args: { command: "make" }, output: "half" })} />,
    );
    expect(row().textContent).toContain("Stopped");
    fireEvent.click(row());
    expect(screen.getByText("half")).toBeTruthy();
  });

  it("lists matches and opens their files", () => {
    const open = vi.fn();
    const result =
      "Found 1 matches under /mnt/user-data/workspace (relative to /mnt/user-data/workspace)\nsrc/a.py:3: import os";
    renderChat(
      <ToolCard call={callWith({ name: "grep", args: { pattern: "import" }, result })} />,
      sessionWith(),
      open,
    );
    expect(row().textContent).toContain("1 match");
    fireEvent.click(row());
    fireEvent.click(screen.getByRole("button", { name: "src/a.py" }));
    expect(open).toHaveBeenCalledWith("/mnt/user-data/workspace/src/a.py");
  });

  it("links what a search found, and loads none of its pictures", async () => {
    const found = { title: "A page", source_url: "https://example.com/a", width: 640, height: 480 };
    const result = JSON.stringify({
      query: "cats",
      results: [
        { ...found, image_url: "https://img.example.com/a.png" },
        { title: "No address", image_url: "javascript:alert(1)" },
      ],
    });
    const { container } = renderChat(
      <ToolCard call={callWith({ name: "image_search", args: { query: "cats" }, result })} />,
    );
    fireEvent.click(row());
    const link = await screen.findByRole<HTMLAnchorElement>("link", { name: "A page" });
    expect(link.href).toBe("https://example.com/a");
    expect(link.rel).toContain("noopener");
    expect(container.textContent).toContain("640 × 480");
    expect(container.textContent).not.toContain("No address");
    expect(container.querySelector("img")).toBeNull();
  });

  it("shows what a page looked like, from the thread alone", () => {
    const path = "/mnt/user-data/workspace/.web/example.org-0123456789.png";
    const result = `# Deer\n\nSource: https://example.org/\nScreenshot: ${path}\n\nScreenshot: /etc/x.png\nDeer.`;
    const call = callWith({ name: "web_capture", args: { url: "https://example.org/" }, result });
    const open = vi.fn();
    renderChat(<ToolCard call={call} />, sessionWith(), open);
    fireEvent.click(row());
    expect(screen.getByRole<HTMLImageElement>("img").src).toContain(`/artifacts${path}`);
    fireEvent.click(screen.getByRole("button", { name: /example\.org-0123456789\.png/ }));
    expect(open).toHaveBeenCalledWith(path);
  });

  it("shows any other tool with arguments and result, also while its arguments arrive", () => {
    const { unmount } = renderChat(<ToolCard call={callWith({ name: "weather__now", status: "writing" })} />);
    expect(row().textContent).toContain("Using now (weather)");
    unmount();
    renderChat(
      <ToolCard call={callWith({ name: "weather__now", args: { city: "Oslo" }, result: '{"degrees":3}' })} />,
    );
    fireEvent.click(row());
    expect(screen.getByText(/"city": "Oslo"/)).toBeTruthy();
    expect(screen.getByText(/"degrees": 3/)).toBeTruthy();
  });
});
