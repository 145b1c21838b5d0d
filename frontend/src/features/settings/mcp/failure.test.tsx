import { render, screen } from "@testing-library/react";
import { beforeEach, expect, it } from "vitest";
import { IntlProvider } from "use-intl";
import { useFailure } from "./failure";
import { mcp } from "./zh";

function Shown(props: Parameters<ReturnType<typeof useFailure>>[0]) {
  return <p>{useFailure()(props)}</p>;
}

beforeEach(() => localStorage.setItem("locale", JSON.stringify("zh")));

it.each([
  [{ error: "Connection closed: no key", reason: "ended", values: { said: "no key" } }, "连接已断开。no key"],
  [{ error: "It does not answer", reason: "no_answer", values: { said: "" } }, "没有响应。"],
  [{ error: "HTTP 500: {oops}", reason: null, values: {} }, "HTTP 500: {oops}"],
] as const)("a failure of a server is worded where the sentence is ours: %o", (failure, text) => {
  render(
    <IntlProvider locale="zh" messages={{ mcp }}>
      <Shown {...failure} />
    </IntlProvider>,
  );
  expect(screen.getByText(text)).toBeTruthy();
});
