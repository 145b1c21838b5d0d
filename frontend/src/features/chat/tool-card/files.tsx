"use client";
import { useState } from "react";
import { DiffView } from "@/ui/diff-view";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { useChat } from "../chat-context";
import { nameOf, pictureUrl } from "@/lib/files";
import type { ToolCall } from "../thread/message";
import { Block, PathButton, PlainText } from "./blocks";
import { Args } from "./describe";
import { parseList, type Match } from "./results";

/** A file that is written, or a part of one that is replaced. */
export function WriteBody({ call }: { call: ToolCall }) {
  const args = new Args(call.args);
  const path = args.text("path");
  const content = args.text("content");
  const isEdit = call.name === "str_replace";
  const complete = call.status !== "writing";
  return (
    <div className="flex flex-col gap-2">
      {path && <PathButton path={path} />}
      {isEdit && complete ? (
        <DiffView before={args.text("old_str")} after={args.text("new_str")} filename={nameOf(path)} />
      ) : (
        (content || args.text("new_str")) && (
          <Block copy={() => content}>
            <PlainText text={isEdit ? args.text("new_str") : content} />
          </Block>
        )
      )}
    </div>
  );
}

export function ReadBody({ call }: { call: ToolCall }) {
  return (
    <div className="flex flex-col gap-2">
      <PathButton path={new Args(call.args).text("path")} />
      {call.result && (
        <Block copy={() => call.result}>
          <PlainText text={call.result} />
        </Block>
      )}
    </div>
  );
}

const SHOWN = 30;

/** Of `ls`, `glob` and `grep`. */
export function ListBody({ call }: { call: ToolCall }) {
  const t = useT("chat.tool");
  const [all, setAll] = useState(false);
  const { entries, notes } = parseList(call.name, call.result);
  const shown = all ? entries : entries.slice(0, SHOWN);
  if (call.status === "writing" || call.status === "running") return null;
  return (
    <Block copy={() => call.result}>
      <div tabIndex={0} className="max-h-72 overflow-auto px-3 py-2">
        <ul className="flex flex-col gap-0.5">
          {shown.map((entry, i) => (
            <li key={i} className="leading-5">
              <Entry entry={entry} />
            </li>
          ))}
        </ul>
        {entries.length > shown.length && (
          <Button variant="link" size="xs" className="mt-1 px-0" onClick={() => setAll(true)}>
            {t("moreEntries", { n: entries.length })}
          </Button>
        )}
        {[...notes, ...(entries.length || notes.length ? [] : [t("entries", { n: 0 })])].map((note) => (
          <p key={note} className="text-xs text-muted-foreground">
            {note}
          </p>
        ))}
      </div>
    </Block>
  );
}

function Entry({ entry }: { entry: Match }) {
  return (
    <>
      <PathButton path={entry.path} />
      {entry.line !== null && <span className="font-mono text-xs text-muted-foreground">:{entry.line}</span>}
      {entry.text && (
        <span className="ml-2 font-mono text-[12.5px] whitespace-pre-wrap text-muted-foreground">
          {entry.text.trim()}
        </span>
      )}
    </>
  );
}

export function ImageBody({ call }: { call: ToolCall }) {
  const { threadId, actions } = useChat();
  const path = new Args(call.args).text("image_path");
  if (call.status !== "done") return null;
  const urls = (call.images.length ? call.images : [path])
    .map((source) => pictureUrl(threadId, source))
    .filter((url) => url !== null);
  return (
    <div className="flex flex-wrap gap-2">
      {urls.map((url) => (
        <button key={url} type="button" aria-label={nameOf(path)} onClick={() => actions.openFile(path)}>
          <img src={url} alt={nameOf(path)} loading="lazy" className="max-h-64 rounded-lg border" />
        </button>
      ))}
    </div>
  );
}
