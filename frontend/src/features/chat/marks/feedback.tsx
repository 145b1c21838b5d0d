"use client";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ThumbsDown, ThumbsUp } from "lucide-react";
import { toast } from "@/ui/toast";
import { useT } from "@/i18n";
import { cn } from "@/lib/cn";
import { threadApi } from "@/lib/api";
import { http } from "@/lib/http";
import { IconButton } from "@/ui/icon-button";

type Rating = 1 | -1 | null;

/** A thumb for a run; pressed again it is withdrawn. It is only asked for when `wanted`, since most are never looked at. */
export function Feedback({ threadId, runId, wanted }: { threadId: string; runId: string; wanted: boolean }) {
  const t = useT("chat.answer");
  const client = useQueryClient();
  const path = threadApi(threadId, `/runs/${encodeURIComponent(runId)}/feedback`);
  const key = ["feedback", threadId, runId];
  const { data } = useQuery({
    queryKey: key,
    queryFn: async () => (await http.get<{ rating: Rating }[]>(path)).at(0)?.rating ?? null,
    enabled: wanted,
    staleTime: Infinity,
  });
  const rate = useMutation({
    mutationFn: (rating: Rating) => (rating ? http.put(path, { rating }) : http.delete(path)),
    onMutate: (rating) => {
      const before = client.getQueryData<Rating>(key) ?? null;
      client.setQueryData(key, rating);
      return before;
    },
    onError: (_error, _rating, before) => {
      client.setQueryData(key, before ?? null);
      toast.error(t("unrated"));
    },
  });
  const thumb = (rating: 1 | -1, label: string, Icon: typeof ThumbsUp) => (
    <IconButton
      label={label}
      size="icon-xs"
      aria-pressed={data === rating}
      className="text-muted-foreground"
      onClick={() => rate.mutate(data === rating ? null : rating)}
    >
      <Icon aria-hidden className={cn(data === rating && "fill-primary/25 text-primary")} />
    </IconButton>
  );
  return (
    <>
      {thumb(1, t("good"), ThumbsUp)}
      {thumb(-1, t("bad"), ThumbsDown)}
    </>
  );
}
