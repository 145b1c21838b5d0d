import { threadApi } from "./api";

/** Lets the browser save the conversation; a ZIP has its files, too. */
export function downloadThread(threadId: string, format: "md" | "json" | "zip") {
  save(`${threadApi(threadId, "/export")}?format=${format}`);
}

/** Lets the browser save everything of the person in a ZIP. */
export const downloadEverything = () => save("/api/v1/auth/me/archive");

/** Lets the browser save a text that the page has. */
export const downloadText = (name: string, text: string, type: string) =>
  downloadBlob(name, new Blob([text], { type }));

/** Lets the browser save what the page has. */
export function downloadBlob(name: string, blob: Blob) {
  const address = URL.createObjectURL(blob);
  save(address, name);
  URL.revokeObjectURL(address);
}

/** Lets the browser save what is at an address, under the server's name for it if none is given. */
export function save(address: string, name = "") {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}
