import { render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { LateTexts, LocaleProvider } from "@/i18n";
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
      <LateTexts of="viewers">
        <Pdf file={file} onPath={() => {}} />
      </LateTexts>
    </LocaleProvider>,
  );
};
const ADDRESS = /\/threads\/t1\/artifacts\/mnt\/user-data\/outputs\/a%20paper\.pdf\?of=7-b/;

afterEach(() => vi.unstubAllGlobals());

test("a PDF stands in the browser's own viewer at the width of the page, and again when it has changed", async () => {
  shown(true);
  const { src } = await screen.findByTitle<HTMLIFrameElement>("Document a paper.pdf");
  expect(src).toMatch(ADDRESS);
  expect(new URL(src).hash).toMatch(/navpanes=0.*view=FitH/);
});

test("where the browser has none, it opens in a tab of its own", async () => {
  shown(false);
  const link = await screen.findByRole<HTMLAnchorElement>("link");
  expect(link.href).toMatch(ADDRESS);
  expect([link.target, link.rel]).toEqual(["_blank", "noopener noreferrer"]);
});
