"use client";
import { threadApi } from "@/lib/api";
import { downloadBlob } from "@/lib/export";
import { nameOf } from "@/lib/files";
import { request } from "@/lib/http";

export type ReportFormat = "pdf" | "docx";
export const REPORT_FORMATS: readonly ReportFormat[] = ["pdf", "docx"];

export const reportName = (path: string, format: ReportFormat) =>
  `${nameOf(path).replace(/\.(md|markdown)$/i, "")}.${format}`;

/** Lets the browser save a Markdown file as a document that the server makes of it. Returns what is missing in it. */
export async function saveReport(threadId: string, path: string, format: ReportFormat): Promise<string[]> {
  const answer = await request("POST", threadApi(threadId, "/reports"), {
    body: JSON.stringify({ path, format }),
    headers: { "Content-Type": "application/json" },
  });
  downloadBlob(reportName(path, format), await answer.blob());
  return JSON.parse(decodeURIComponent(answer.headers.get("x-problems") ?? "[]")) as string[];
}
