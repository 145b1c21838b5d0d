"use client";
import { useMutation } from "@tanstack/react-query";
import { CircleCheck, CircleX, Plug } from "lucide-react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Note } from "../parts";
import { testEntry } from "./api";
import type { Entry } from "./entry";
import { useFailure } from "./failure";
import { LogText } from "./log-dialog";

/** Tries a server as it stands in the form, before anything is kept. */
export function TestServer({ name, entry }: { name: string; entry: Entry }) {
  const t = useT("mcp");
  const worded = useFailure();
  const test = useMutation({ mutationFn: () => testEntry(name, entry) });
  const { data, error } = test;
  const failure = error?.message ?? (data && data.state !== "ready" ? worded(data) : null);
  return (
    <div className="flex min-w-0 flex-col gap-2.5">
      <Button
        variant="outline"
        size="sm"
        className="self-start"
        pending={test.isPending}
        onClick={() => test.mutate()}
      >
        {!test.isPending && <Plug aria-hidden />}
        {t(test.isPending ? "testing" : "test")}
      </Button>
      <div role="status" className="flex min-w-0 flex-col gap-2.5 empty:hidden">
        {!test.isPending && failure !== null && failure !== undefined && (
          <Note tone="destructive" icon={<CircleX aria-hidden />}>
            {t("testFailed")} {failure}
          </Note>
        )}
        {!test.isPending && data?.state === "ready" && (
          <Note tone="success" icon={<CircleCheck aria-hidden />}>
            {t("tested", { n: data.tools.length })}
            {data.tools.length > 0 && (
              <span className="block font-mono text-xs break-words text-muted-foreground">
                {data.tools.map((tool) => tool.name).join(", ")}
              </span>
            )}
          </Note>
        )}
      </div>
      {!test.isPending && data && data.state !== "ready" && data.log.length > 0 && (
        <LogText label={t("logTitle", { name })} lines={data.log} />
      )}
    </div>
  );
}
