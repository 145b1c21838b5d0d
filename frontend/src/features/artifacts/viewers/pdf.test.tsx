import { render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { LocaleProvider } from "@/i18n";
import Pdf from "./pdf";

const file = {
  threadId: "t1",
  path: "/mnt/user-data/outputs/a paper.pdf",
  version: null,
  etag: '"7-b"',
  size: 9,
  mime: "application/pdf",
  modified: null,
};
const shown = (viewer: boolean) => {
  vi.stubGlobal("navigator", Object.create(navigator, { pdfViewerEnabled: { value: viewer } }));
  render(
    <LocaleProvider>
      <Pdf file={file} onPath={() => {}} />
    </LocaleProvider>,
  );
};
const ADDRESS = /\/threads\/t1\/artifacts\/mnt\/user-data\/outputs\/a%20paper\.pdf\?of=7-b$/;

afterEach(() => vi.unstubAllGlobals());

test("a PDF stands in the browser's own viewer, anew when it has changed", () => {
  shown(true);
  expect(screen.getByTitle<HTMLIFrameElement>("Document a paper.pdf").src).toMatch(ADDRESS);
});

test("where the browser has none, it opens in a tab of its own", () => {
  shown(false);
  const link = screen.getByRole<HTMLAnchorElement>("link");
  expect(link.href).toMatch(ADDRESS);
  expect([link.target, link.rel]).toEqual(["_blank", "noopener noreferrer"]);
});
