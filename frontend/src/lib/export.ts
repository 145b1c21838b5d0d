import { threadApi } from "./api";

/** Lets the browser save the conversation; a ZIP has its files, too. */
export function downloadThread(threadId: string, format: "md" | "json" | "zip") {
  const link = document.createElement("a");
  link.href = `${threadApi(threadId, "/export")}?format=${format}`;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}
