"use client";
import { createContext, Suspense, use, useRef, useState, type MouseEvent } from "react";
import { late } from "@/lib/late";
import { hostOf } from "@/lib/web";
import { LateTexts } from "@/i18n";
import { focusItself } from "@/ui/dialog";
import { Popover, PopoverAnchor, PopoverContent } from "@/ui/popover";
import { Spinner } from "@/ui/spinner";
import { sameUrl, type Source } from "./citations";
import { webTexts } from "../web";

const SourceCard = late(() => import("./source-card"));

/** Those of the text around. */
export const Sources = createContext<readonly Source[]>([]);

export function useSource(url: string): Source | undefined {
  return use(Sources).find((source) => sameUrl(source.url) === sameUrl(url));
}

/** About as high as the card: where there is room for it is decided when it opens. */
const waiting = <Spinner className="mx-auto my-22" />;

const OPENS_AFTER = 200;
const CLOSES_AFTER = 250;

/** The number of a source. Pointing at it shows what was read; pressing it keeps that open, and leads into it. */
export function Citation({ source }: { source: Source }) {
  const [open, setOpen] = useState<false | "hover" | "kept">(false);
  const chip = useRef<HTMLAnchorElement>(null);
  const card = useRef<HTMLDivElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [statement, setStatement] = useState("");
  const show = (how: "hover" | "kept") => {
    setStatement(statementBefore(chip.current));
    setOpen(how);
  };
  const later = (act: () => void, ms: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(act, ms);
  };
  const press = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    clearTimeout(timer.current);
    if (open === "kept") setOpen(false);
    else show("kept");
    if (open === "hover") card.current?.focus();
  };
  const leave = () => later(() => setOpen((now) => (now === "hover" ? false : now)), CLOSES_AFTER);
  const name = [`${source.number}`, source.title, hostOf(source.url)].filter(Boolean).join(", ");
  return (
    <Popover open={open !== false} onOpenChange={(now) => !now && setOpen(false)}>
      <PopoverAnchor asChild>
        <a
          ref={chip}
          href={source.url}
          target="_blank"
          rel="noopener noreferrer nofollow"
          data-citation=""
          aria-label={name}
          aria-haspopup="dialog"
          aria-expanded={open !== false}
          onClick={press}
          onPointerEnter={(event) =>
            event.pointerType === "mouse" && !open && later(() => show("hover"), OPENS_AFTER)
          }
          onPointerLeave={leave}
        >
          {source.number}
        </a>
      </PopoverAnchor>
      <PopoverContent
        ref={card}
        align="start"
        aria-label={name}
        className="w-88"
        onOpenAutoFocus={(event) => (open === "hover" ? event.preventDefault() : focusItself(event))}
        onCloseAutoFocus={(event) => {
          event.preventDefault();
          if (card.current?.contains(document.activeElement) || document.activeElement === document.body)
            chip.current?.focus({ preventScroll: true });
        }}
        onInteractOutside={(event) => chip.current?.contains(event.target as Node) && event.preventDefault()}
        onPointerEnter={() => clearTimeout(timer.current)}
        onPointerLeave={leave}
      >
        <Suspense fallback={waiting}>
          <LateTexts of={webTexts} fallback={waiting}>
            <SourceCard source={source} statement={statement} onDone={() => setOpen(false)} />
          </LateTexts>
        </Suspense>
      </PopoverContent>
    </Popover>
  );
}

/** Text before a citation in its paragraph, from the previous citation on. */
function statementBefore(chip: HTMLElement | null): string {
  const block = chip?.closest("p, li, td, th, dd, blockquote, h1, h2, h3, h4");
  if (!chip || !block) return "";
  const range = document.createRange();
  range.selectNodeContents(block);
  range.setEndBefore(chip);
  const part = range.cloneContents();
  part.querySelectorAll("[data-citation]").forEach((other) => other.replaceWith("\u241e"));
  const text = part.textContent ?? "";
  const pieces = text.split("\u241e").filter((piece) => /[\p{L}\d]{2}/u.test(piece));
  return (pieces.at(-1) ?? "").slice(-600);
}
