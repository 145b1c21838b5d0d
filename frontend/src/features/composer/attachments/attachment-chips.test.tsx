import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { LocaleProvider } from "@/i18n";
import { restored } from "./attachment";
import AttachmentChips from "./attachment-chips";
import type { Attachments } from "./use-attachments";

afterEach(() => vi.unstubAllGlobals());

const upload = (filename: string) => ({ filename, size: 2048, path: `/mnt/user-data/uploads/${filename}` });

test("a document says that it is being read, then why it has no text", async () => {
  const reason = "locked.pdf is encrypted. Ask for a copy without a password.";
  const files = [
    { ...upload("report.pdf"), conversion: "done" },
    { ...upload("locked.pdf"), conversion: "running" },
  ];
  vi.stubGlobal("fetch", async () => Response.json({ files, count: 2 }));
  const all = ["report.pdf", "locked.pdf"].map((name) => ({ ...restored(upload(name)), converting: true }));
  render(
    <QueryClientProvider client={new QueryClient()}>
      <LocaleProvider>
        <AttachmentChips threadId="t1" attachments={{ all } as unknown as Attachments} onText={() => {}} />
      </LocaleProvider>
    </QueryClientProvider>,
  );
  expect(await screen.findByText("2 kB · Reading…")).toBeTruthy();
  expect(screen.getByText("2 kB")).toBeTruthy();
  files[1] = { ...upload("locked.pdf"), conversion: "failed", conversion_error: reason } as never;
  expect((await screen.findByText("2 kB · No readable text")).title).toBe(reason);
});
