"use client";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useT } from "@/i18n";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { toast } from "@/ui/toast";
import * as api from "./api";

/** Tools that are other ones than those that were accepted: what was, what is, and one click to accept them. */
export function Changes({ server }: { server: api.Server }) {
  const t = useT("mcp");
  const queries = useQueryClient();
  const { name } = server;
  const { data, error } = useQuery({
    queryKey: [...api.KEYS.servers, name, "changes", server.changes],
    queryFn: () => api.changes(name),
  });
  const accept = useMutation({
    mutationFn: (shown: api.Change[]) =>
      api.accept(
        name,
        shown.map((one) => one.digest),
      ),
    onSuccess: () => toast.success(t("change.accepted", { name })),
    onError: (problem) => toast.error(problem.message),
    onSettled: () => queries.invalidateQueries({ queryKey: api.KEYS.servers }),
  });
  return (
    <section aria-label={t("change.title", { n: server.changes })} className="rounded-lg border px-3 py-2.5">
      <p className="text-[13px] font-medium text-warning">{t("change.title", { n: server.changes })}</p>
      <p className="mt-0.5 text-xs leading-relaxed text-muted-foreground">{t("change.text")}</p>
      {error && <p className="mt-1 text-xs text-destructive">{error.message}</p>}
      {data?.map((one) => (
        <details key={one.digest} className="mt-2 text-xs">
          <summary className="cursor-pointer leading-relaxed">
            <span className="font-mono font-medium break-all">{one.tool}</span>{" "}
            <Badge variant="warning">{t(`change.${one.change}`)}</Badge>
            {one.is_moved && <span className="ml-1.5 text-muted-foreground">{t("change.moved")}</span>}
          </summary>
          {one.before !== null && <Definition label={t("change.before")} text={one.before} />}
          <Definition label={t("change.after")} text={one.after} />
        </details>
      ))}
      <Button
        size="sm"
        className="mt-2.5"
        disabled={!data?.length}
        pending={accept.isPending}
        onClick={() => data && accept.mutate(data)}
        aria-label={t("change.acceptOf", { name })}
      >
        {t("change.accept")}
      </Button>
    </section>
  );
}

function Definition({ label, text }: { label: string; text: string }) {
  return (
    <figure className="mt-1.5">
      <figcaption className="text-muted-foreground">{label}</figcaption>
      <pre className="mt-1 max-h-60 overflow-auto rounded-md bg-muted p-2 font-mono text-xs leading-relaxed break-words whitespace-pre-wrap">
        {text}
      </pre>
    </figure>
  );
}
