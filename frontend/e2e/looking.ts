import type { Page } from "@playwright/test";

interface Watched {
  away: boolean;
  notices: { title: string; body: string }[];
}

/** A browser that allows notices, and in which a person can look elsewhere. */
export async function allowNotices(page: Page, url: string) {
  await page.addInitScript(() => {
    const watched: Watched = Object.assign(window, { away: false, notices: [] });
    class Notice {
      static permission = "granted";
      onclick: (() => void) | null = null;
      constructor(title: string, { body }: { body: string }) {
        watched.notices.push({ title, body });
      }
      close() {}
    }
    Object.assign(window, { Notification: Notice });
    Object.defineProperty(document, "visibilityState", {
      get: () => (watched.away ? "hidden" : "visible"),
    });
  });
  await page.goto(`${url}/settings/notifications`);
  await page.getByRole("switch", { name: "Notify me" }).click();
  await page.goto(`${url}/chats`);
}

export const notices = (page: Page) => page.evaluate(() => (window as unknown as Watched).notices);
export const look = (page: Page, where: "here" | "elsewhere") =>
  page.evaluate((away) => {
    (window as unknown as Watched).away = away;
    document.dispatchEvent(new Event("visibilitychange"));
  }, where === "elsewhere");
