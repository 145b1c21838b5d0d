"use client";
import { useQuery } from "@tanstack/react-query";
import { ArrowLeft } from "lucide-react";
import type { MouseEvent } from "react";
import { Markdown } from "@/features/markdown";
import { useT } from "@/i18n";
import type { components } from "@/lib/api-types";
import { http } from "@/lib/http";
import { isPlainClick, settingsPath } from "@/lib/route";
import { Button } from "@/ui/button";
import { Waiting } from "../parts";

/** A page of the documentation that came with this server; `changes`: what is new in it. */
export function Guide({ name, onOpen }: { name: string; onOpen: (name: string | null) => void }) {
  const follow = (event: MouseEvent) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const page = link?.href.startsWith(PAGES) ? new URL(link.href).searchParams.get("name") : null;
    if (!page || !isPlainClick(event)) return;
    event.preventDefault();
    onOpen(page);
  };
  const t = useT("about");
  const { data, error, refetch } = useQuery({
    queryKey: ["guide", name],
    queryFn: async () => (await http.get<components["schemas"]["Guide"]>(`/api/guides/${name}`)).text,
    staleTime: Infinity,
  });
  return (
    <article className="flex flex-col gap-4" onClick={follow}>
      <Button
        variant="ghost"
        size="sm"
        className="-ml-2.5 w-fit text-muted-foreground"
        onClick={() => onOpen(null)}
      >
        <ArrowLeft aria-hidden />
        {t("back")}
      </Button>
      {data === undefined ? (
        <Waiting error={error} retry={() => void refetch()} rows={6} />
      ) : (
        <Markdown text={linked(data, name)} />
      )}
    </article>
  );
}

/** Whole addresses, as the text of others has them: paths in it are those of a chat's files. */
const PAGES = `${typeof window === "undefined" ? "" : window.location.origin}${settingsPath("about")}?name=`;
const LINK = /\[([^\]\n]*)\]\((?!https?:)([^)\s]+)\)/g;

/** Links to other pages lead there; those to files that did not come along are their text. */
export function linked(text: string, name: string): string {
  const folder = name.includes("/") ? `${name.split("/")[0]}/` : "";
  return text.replace(LINK, (_, words: string, target: string) => {
    const [path = ""] = target.split("#");
    if (!path) return words;
    const page = path.startsWith("../") ? path.slice(3) : folder + path;
    const found = /^([a-z-]+(?:\/[a-z-]+)?)\.md$/.exec(page.replace(/^docs\//, ""))?.[1];
    const isHere = found && !(path.startsWith("../") && !folder);
    return isHere ? `[${words}](${PAGES}${encodeURIComponent(found)})` : words;
  });
}
