"use client";
import { useQuery } from "@tanstack/react-query";
import { FoldVertical } from "lucide-react";
import { useState } from "react";
import { LateTexts, useT } from "@/i18n";
import { threadApi, type ContextTable as Table } from "@/lib/api";
import { cn } from "@/lib/cn";
import { formatTokens } from "@/lib/format";
import { http } from "@/lib/http";
import { keys } from "@/lib/keys";
import { useRunSettings } from "@/lib/run-settings";
import { Button } from "@/ui/button";
import { ErrorState } from "@/ui/error-state";
import { Input } from "@/ui/input";
import { Spinner } from "@/ui/spinner";
import { MemorySwitch } from "./memory-switch";
import { useSession } from "../thread/session";
import { UsageTable } from "./usage";
import { useAction } from "../use-action";
import { detailTexts } from "../texts";

const PARTS = ["system", "tools", "messages", "tool_results", "summary"] as const;
const TONES: Record<(typeof PARTS)[number] | "free", string> = {
  system: "bg-foreground/70",
  tools: "bg-foreground/40",
  messages: "bg-primary",
  tool_results: "bg-primary/55",
  summary: "bg-warning",
  free: "bg-muted",
};

/** Content of the model's window by kind, and a button that makes room. */
export default function ContextTable(props: ContextTableProps) {
  return (
    <LateTexts of={detailTexts} fallback={<Spinner className="mx-auto my-8" />}>
      <Whole {...props} />
    </LateTexts>
  );
}

interface ContextTableProps {
  threadId: string;
  onClose: () => void;
}

function Whole({ threadId, onClose }: ContextTableProps) {
  const t = useT("details.context");
  const { usage, running } = useSession();
  const { modelName } = useRunSettings(threadId);
  const { pending, error, run } = useAction();
  const query = modelName ? `?${new URLSearchParams({ model_name: modelName })}` : "";
  const table = useQuery({
    queryKey: keys.context(threadId, modelName),
    queryFn: () => http.get<Table>(threadApi(threadId, `/context${query}`)),
    staleTime: 0,
  });
  const [keep, setKeep] = useState("");
  const compact = () =>
    http.post(threadApi(threadId, "/compact"), { keep: keep.trim(), model_name: modelName });
  const failed = table.error ?? null;
  return (
    <div className="flex flex-col gap-3">
      {failed ? (
        <ErrorState compact error={failed} retry={() => void table.refetch()} />
      ) : table.data ? (
        <Rows table={table.data} />
      ) : (
        <Spinner label={t("counting")} className="mx-auto my-8" />
      )}
      <form
        className="flex flex-col gap-2 border-t pt-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (!running && !pending) void run(compact).then((done) => done && onClose());
        }}
      >
        <label className="flex flex-col gap-1 text-xs text-muted-foreground">
          {t("keep")}
          <Input
            value={keep}
            placeholder={t("keepHint")}
            className="text-foreground"
            onChange={(event) => setKeep(event.target.value)}
          />
        </label>
        <Button type="submit" variant="outline" size="sm" disabled={running || pending}>
          {pending ? <Spinner /> : <FoldVertical aria-hidden />}
          {t("compact")}
        </Button>
        <p className="text-xs text-pretty text-muted-foreground">{t("compactText")}</p>
        {error && (
          <p role="alert" className="text-xs text-destructive">
            {error}
          </p>
        )}
      </form>
      <MemorySwitch threadId={threadId} className="border-t pt-3" />
      {usage && (
        <div className="border-t pt-3 text-[13px]">
          <p className="mb-1 font-medium">{t("threadCost")}</p>
          <UsageTable usage={usage} />
        </div>
      )}
    </div>
  );
}

function Rows({ table }: { table: Table }) {
  const t = useT("details.context");
  const whole = table.limit ?? table.used;
  const free = Math.max(0, whole - table.used);
  const shown = [...PARTS.filter((part) => part !== "summary" || table.summary > 0), "free"] as const;
  const rows = shown.map((part) => ({ part, size: part === "free" ? free : table[part] }));
  const percent = (size: number) => (whole ? (100 * size) / whole : 0);
  return (
    <>
      <div>
        <p className="font-medium">{t("title")}</p>
        <p className="text-xs text-muted-foreground tabular-nums">
          {t("of", { used: formatTokens(table.used), limit: formatTokens(whole), model: table.model })}
        </p>
      </div>
      <div aria-hidden className="flex h-2 gap-px overflow-hidden rounded-full bg-muted">
        {rows.map(({ part, size }) => (
          <span key={part} className={TONES[part]} style={{ width: `${percent(size)}%` }} />
        ))}
      </div>
      <table className="w-full text-[13px] tabular-nums">
        <tbody>
          {rows.map(({ part, size }) => (
            <tr key={part}>
              <th scope="row" className="py-0.5 text-left font-normal">
                <span
                  aria-hidden
                  className={cn("mr-2 inline-block size-2 rounded-full ring-1 ring-border", TONES[part])}
                />
                {t(part)}
              </th>
              <td className="text-right">{formatTokens(size)}</td>
              <td className="w-14 text-right text-muted-foreground">{Math.round(percent(size))} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
