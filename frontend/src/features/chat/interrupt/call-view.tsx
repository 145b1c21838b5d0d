"use client";
import { useQuery } from "@tanstack/react-query";
import { DiffView } from "@/ui/diff-view";
import { useT } from "@/i18n";
import { fileUrl } from "@/lib/files";
import { ApiError, request } from "@/lib/http";
import { keys } from "@/lib/keys";
import { ErrorState } from "@/ui/error-state";
import { useChat } from "../chat-context";
import { nameOf, threadPathOf } from "@/lib/files";
import { isWeb } from "@/lib/web";
import { Block, PathButton, PlainText } from "../tool-card/blocks";
import { Args } from "../tool-card/describe";
import type { WaitingCall } from "./decisions";

/** What a call would do: a command as code, a change of a file as a difference, anything else as its arguments. */
export function CallView({ call }: { call: WaitingCall }) {
  const t = useT("decisions");
  const args = new Args(call.args);
  if (call.name === "bash" && args.text("command"))
    return (
      <Block copy={() => args.text("command")}>
        <PlainText text={args.text("command")} className="pr-10" />
      </Block>
    );
  if (call.name === "str_replace")
    return <Difference path={args.text("path")} before={args.text("old_str")} after={args.text("new_str")} />;
  if (call.name === "write_file" && args.text("path")) return <FileWrite call={call} />;
  if (isWeb(args.text("url")) && URL.canParse(args.text("url"))) return <Request args={call.args} />;
  if (!Object.keys(call.args).length)
    return <p className="text-[13px] text-muted-foreground">{t("noArguments")}</p>;
  const given = JSON.stringify(call.args, null, 2);
  return (
    <Block copy={() => given}>
      <PlainText text={given} />
    </Block>
  );
}

const BODIES = ["body", "data", "json", "content", "payload"];

/** What is sent where: method, host and address, the body, and whatever else the call names. */
function Request({ args }: { args: Record<string, unknown> }) {
  const t = useT("decisions");
  const given = new Args(args);
  const url = given.text("url");
  const { host, pathname, search } = new URL(url);
  const method = (given.text("method") || "GET").toUpperCase();
  const name = BODIES.find((one) => args[one] !== undefined && args[one] !== null);
  const body = name === undefined ? "" : asText(args[name]);
  const others = Object.entries(args).filter(
    ([key]) => !["url", "method", "description", name].includes(key),
  );
  return (
    <Block label={t("request")} copy={() => [`${method} ${url}`, body].filter(Boolean).join("\n\n")}>
      <p className="px-3 py-2 pr-10 font-mono text-[12.5px] leading-[1.6] [overflow-wrap:anywhere]">
        <span className="mr-2 font-semibold">{method}</span>
        <span className="font-semibold">{host}</span>
        {pathname}
        {search}
      </p>
      {body && <PlainText text={body} className="border-t" />}
      {others.length > 0 && (
        <PlainText text={JSON.stringify(Object.fromEntries(others), null, 2)} className="border-t" />
      )}
    </Block>
  );
}

const asText = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** Against the file as it is now; there is none yet if it is new. */
function FileWrite({ call }: { call: WaitingCall }) {
  const { threadId } = useChat();
  const args = new Args(call.args);
  const path = args.text("path");
  const own = threadPathOf(path);
  const {
    data: before,
    error,
    isPending,
    refetch,
  } = useQuery({
    queryKey: [...keys.file(threadId ?? "", path), "before"],
    queryFn: () => textOf(fileUrl(threadId!, own!)),
    enabled: threadId !== null && own !== null,
    retry: false,
  });
  const after = call.args["append"] === true ? (before ?? "") + args.text("content") : args.text("content");
  if (error) return <ErrorState compact error={error} retry={() => void refetch()} />;
  if (isPending && own) return <PathButton path={path} />;
  return <Difference path={path} before={before ?? ""} after={after} isNew={!before} />;
}

/** Empty if there is no such file; any other trouble must not look as if there were none. */
async function textOf(url: string): Promise<string> {
  try {
    return await (await request("GET", url)).text();
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return "";
    throw error;
  }
}

interface DifferenceProps {
  path: string;
  before: string;
  after: string;
  isNew?: boolean;
}

function Difference({ path, before, after, isNew }: DifferenceProps) {
  const t = useT("decisions");
  return (
    <div className="flex flex-col gap-1.5">
      <div className="flex items-baseline gap-2">
        <PathButton path={path} />
        {isNew && <span className="text-xs text-muted-foreground">{t("newFile")}</span>}
      </div>
      <DiffView before={before} after={after} filename={nameOf(path)} />
    </div>
  );
}
