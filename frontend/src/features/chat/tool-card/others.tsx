"use client";
import { Suspense } from "react";
import { LateTexts, useT } from "@/i18n";
import { RemotePicture, webTexts } from "@/features/markdown";
import type { ToolCall } from "../thread/message";
import { Block, HitList, PathButton, PlainText } from "./blocks";
import { Args } from "./describe";
import { nameOf, pictureUrl } from "@/lib/files";
import { isWeb } from "@/lib/web";
import { useChat } from "../chat-context";
import { parseHits, parsePictures } from "./results";
import { TodoList, todosIn } from "./todo-list";

/** Of searches and pages. */
export function WebBody({ call }: { call: ToolCall }) {
  const url = new Args(call.args).text("url");
  const isPage = call.name === "web_fetch" || call.name === "web_capture";
  const hits = isPage ? [] : parseHits(call.result);
  return (
    <div className="flex flex-col gap-2">
      {isWeb(url) && <HitList hits={[{ url, title: url, text: "" }]} />}
      <Screenshot call={call} />
      {hits.length > 0 ? (
        <HitList hits={hits} />
      ) : (
        call.result && (
          <Block copy={() => call.result}>
            <PlainText text={call.result} />
          </Block>
        )
      )}
    </div>
  );
}

/** Screenshot of a page in the server's browser. */
function Screenshot({ call }: { call: ToolCall }) {
  const { threadId } = useChat();
  const path = /^Screenshot: (\/mnt\/user-data\/\S+\.png)$/m.exec(call.result)?.[1];
  const url = path && call.name === "web_capture" && pictureUrl(threadId, path);
  if (!url) return null;
  return (
    <>
      <img src={url} alt={nameOf(path)} className="max-h-72 self-start rounded-lg border object-contain" />
      <PathButton path={path} />
    </>
  );
}

/** Results of an image search, as frames: nothing loads from other servers until the person asks for it. */
export function PicturesBody({ call }: { call: ToolCall }) {
  const pictures = parsePictures(call.result);
  if (!pictures.length) return <WebBody call={call} />;
  return (
    <Suspense>
      <LateTexts of={webTexts}>
        <ul className="grid grid-cols-2 gap-3 sm:grid-cols-3">
          {pictures.map((picture) => (
            <li key={picture.urls[0]} className="min-w-0">
              <RemotePicture {...picture} />
            </li>
          ))}
        </ul>
      </LateTexts>
    </Suspense>
  );
}

export function PresentBody({ call }: { call: ToolCall }) {
  return (
    <ul className="flex flex-col gap-1">
      {new Args(call.args).list("filepaths").map((path) => (
        <li key={path}>
          <PathButton path={path} />
        </li>
      ))}
    </ul>
  );
}

export function TodosBody({ call }: { call: ToolCall }) {
  return <TodoList todos={todosIn(call.args["todos"])} />;
}

/** Any other tool: its arguments and its result as they are. */
export function PlainBody({ call }: { call: ToolCall }) {
  const t = useT("chat.tool");
  const hasArgs = Object.keys(call.args).length > 0;
  const given = JSON.stringify(call.args, null, 2);
  const result = readable(call.result);
  return (
    <div className="flex flex-col gap-2">
      {hasArgs && (
        <Block label={t("arguments")} copy={() => given}>
          <PlainText text={given} />
        </Block>
      )}
      {(result || call.output) && (
        <Block label={t("result")} copy={() => result || call.output}>
          <PlainText text={result || call.output} />
        </Block>
      )}
    </div>
  );
}

function readable(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
