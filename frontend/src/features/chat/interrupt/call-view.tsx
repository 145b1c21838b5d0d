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
import { marked } from "@/lib/marks";
import { Block, PathButton } from "../tool-card/blocks";
import { Args } from "../tool-card/describe";
import { Fields } from "./fields";
import { LongText, Marked } from "./long-text";
import { outlineOf } from "./outline";
import type { WaitingCall } from "./decisions";

interface CallViewProps {
  call: WaitingCall;
  /** Its `description` is shown as the agent's words. */
  said: boolean;
}

/**
 * Effect of a call: a command as code, a file change as a diff, anything else as its arguments. Nothing is left
 * out.
 */
export function CallView({ call, said }: CallViewProps) {
  const t = useT("decisions");
  const args = new Args(call.args);
  const rest = (...shown: string[]) =>
    Object.fromEntries(
      Object.entries(call.args).filter(
        ([name]) => !shown.includes(name) && !(said && name === "description"),
      ),
    );
  if (call.name === "bash" && args.text("command"))
    return (
      <>
        <Block copy={() => args.text("command")}>
          <LongText text={args.text("command")} className="pr-10" />
        </Block>
        <Others args={rest("command")} />
      </>
    );
  if (call.name === "str_replace" && isText(call.args, "path", "old_str", "new_str"))
    return (
      <>
        <Difference path={args.text("path")} before={args.text("old_str")} after={args.text("new_str")} />
        <Others args={rest("path", "old_str", "new_str")} />
      </>
    );
  if (call.name === "write_file" && isText(call.args, "path", "content"))
    return (
      <>
        <FileWrite call={call} />
        <Others args={rest("path", "content")} />
      </>
    );
  if (isWeb(args.text("url")) && URL.canParse(args.text("url")))
    return <Request args={call.args} rest={rest} />;
  const given = rest();
  if (!Object.keys(given).length)
    return <p className="text-[13px] text-muted-foreground">{t("noArguments")}</p>;
  return <Fields args={given} />;
}

const isText = (args: Record<string, unknown>, ...names: string[]) =>
  names.every((name) => typeof args[name] === "string");

const Others = ({ args }: { args: Record<string, unknown> }) =>
  Object.keys(args).length > 0 && <Fields args={args} />;

const BODIES = ["body", "data", "json", "content", "payload"];

interface RequestProps {
  args: Record<string, unknown>;
  /** The other arguments. */
  rest: (...shown: string[]) => Record<string, unknown>;
}

/** Request that would be sent: method, host and address, body, and any other argument of the call. */
function Request({ args, rest }: RequestProps) {
  const t = useT("decisions");
  const given = new Args(args);
  const url = given.text("url");
  const { username, password, host, pathname, search, hash } = new URL(url);
  const hasMethod = typeof args["method"] === "string";
  const method = (hasMethod ? given.text("method") : "GET").toUpperCase();
  const name = BODIES.find((one) => args[one] !== undefined && args[one] !== null) ?? "";
  const body = name && outlineOf(args[name]);
  const others = rest("url", ...(hasMethod ? ["method"] : []), name);
  return (
    <>
      <Block label={t("request")} copy={() => [`${method} ${url}`, body].filter(Boolean).join("\n\n")}>
        <p
          dir="ltr"
          className="px-3 py-2 pr-10 font-mono text-[12.5px] leading-[1.6] [overflow-wrap:anywhere]"
        >
          <span className="mr-2 font-semibold">
            <Marked text={method} />
          </span>
          {(username || password) && marked(`${username}:${password}@`)}
          <span className="font-semibold">{host}</span>
          {marked(pathname + search + hash)}
        </p>
        {body && <LongText text={body} className="border-t" />}
      </Block>
      <Others args={others} />
    </>
  );
}

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
        <PathButton path={path}>{marked(path)}</PathButton>
        {isNew && <span className="text-xs text-muted-foreground">{t("newFile")}</span>}
      </div>
      <DiffView
        before={marked(before)}
        after={marked(after)}
        filename={marked(nameOf(path))}
        more={(n) => t("moreLines", { n })}
      />
    </div>
  );
}
