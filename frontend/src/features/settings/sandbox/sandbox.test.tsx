import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { IntlProvider } from "use-intl";
import { zh } from "@/i18n/messages/zh";
import SandboxSection from ".";
import { sandbox as texts } from "./zh";

const problem = { sentence: "In English.", fix: "Do it in English." };
const sandbox = {
  available: false,
  provider: "auto",
  isolation: "none",
  warnings: [],
  network: "internet",
  allowed_hosts: [],
  tool_image: { enabled: false },
  limits: {},
  enforced_limits: [],
  command_timeout: 0,
  problems: [
    { ...problem, code: "image-missing", values: { image: "box:1" } },
    { ...problem, code: "failed", values: { said: "bwrap: odd" } },
    { ...problem, code: "of-another-provider", values: { said: "no" } },
  ],
};

beforeEach(() => {
  localStorage.setItem("locale", JSON.stringify("zh"));
  vi.stubGlobal("fetch", async () => Response.json({ sandbox, config: null }));
});
afterEach(() => vi.unstubAllGlobals());

it("words why there is no shell in the language of the page, and leaves what a program said", async () => {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <IntlProvider locale="zh" messages={{ ...zh, sandbox: texts }}>
        <SandboxSection />
      </IntlProvider>
    </QueryClientProvider>,
  );
  const items = (await screen.findAllByRole("listitem")).map((item) =>
    [...item.children].map((line) => line.textContent),
  );
  expect(items).toEqual([
    ["容器引擎中没有镜像 box:1。", expect.stringContaining("docker pull")],
    ["无法启动沙箱。", "bwrap: odd", "请运行“deerflow doctor”并反馈其输出。"],
    ["In English.", "Do it in English."],
  ]);
});
