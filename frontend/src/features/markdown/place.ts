"use client";
import { createContext, use } from "react";

/** Thread and file of a text, so that its links and pictures lead to files of that thread. */
export interface Place {
  threadId: string | null;
  /** Path of the file that the text is; links are relative to it. Empty: it is no file. */
  path?: string;
  openFile: (path: string) => void;
}

/** Null: outside of a thread; files are then only named. */
export const MarkdownPlace = createContext<Place | null>(null);

export const usePlace = () => use(MarkdownPlace);
