"use client";
import { ChevronDown, ChevronUp, X } from "lucide-react";
import { useEffect, useEffectEvent, useRef, useState, type RefObject } from "react";
import { useT } from "@/i18n";
import { IconButton } from "@/ui/icon-button";
import { Input } from "@/ui/input";
import { rangesIn, type Place } from "./find";

/** Frames for which nothing has moved before one looks at where a match stands. */
const STILL = 3;
/** Then a row that draws no match (it stands in a diagram, say) is what there is to see. */
const PATIENCE = 90;

interface FindBarProps {
  query: string;
  onQuery: (query: string) => void;
  wanted: RegExp | null;
  places: readonly Place[];
  box: RefObject<HTMLDivElement | null>;
  /** Brings a turn into the page. */
  show: (turn: number) => void;
  onClose: () => void;
}

/** Looks for words in the whole conversation, also where it is not in the page. */
export default function FindBar({ query, onQuery, wanted, places, box, show, onClose }: FindBarProps) {
  const t = useT("chat.find");
  const [chosen, setChosen] = useState<{ wanted: RegExp | null; index: number } | null>(null);
  const index = chosen?.wanted === wanted ? Math.min(chosen.index, places.length - 1) : places.length - 1;
  const place = places[index];
  const move = (by: number) => {
    if (places.length) setChosen({ wanted, index: (index + by + places.length) % places.length });
  };
  useHighlights(box, wanted, place);
  useInSight(box, wanted, place, show);
  return (
    <search
      className="absolute inset-x-3 top-2 z-10 flex animate-rise items-center gap-1 rounded-xl bg-popover p-1.5 text-popover-foreground shadow-float motion-reduce:animate-none sm:left-auto sm:w-96 print:hidden"
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Escape") onClose();
        else if (event.key === "Enter" && event.target instanceof HTMLInputElement)
          move(event.shiftKey ? -1 : 1);
        else return;
        event.preventDefault();
      }}
    >
      <Input
        autoFocus
        role="searchbox"
        data-find=""
        aria-label={t("label")}
        placeholder={t("label")}
        value={query}
        className="h-8 flex-1 border-transparent bg-transparent px-2 dark:bg-transparent"
        onChange={(event) => onQuery(event.target.value)}
      />
      <span role="status" className="shrink-0 px-1 text-xs text-muted-foreground tabular-nums">
        {wanted && (places.length ? t("at", { index: index + 1, count: places.length }) : t("nothing"))}
      </span>
      <IconButton label={t("previous")} disabled={!places.length} onClick={() => move(-1)}>
        <ChevronUp aria-hidden />
      </IconButton>
      <IconButton label={t("next")} disabled={!places.length} onClick={() => move(1)}>
        <ChevronDown aria-hidden />
      </IconButton>
      <IconButton label={t("close")} onClick={onClose}>
        <X aria-hidden />
      </IconButton>
    </search>
  );
}

type Box = RefObject<HTMLDivElement | null>;

function rangeOf(box: Box, wanted: RegExp, { turn, nth }: Place): Range | undefined {
  const row = box.current?.querySelector(`[data-index="${turn}"]`);
  const ranges = row ? rangesIn(row, wanted) : [];
  return ranges[nth] ?? ranges.at(-1);
}

/** Marks what is drawn, and goes on marking while rows come and go. */
function useHighlights(box: Box, wanted: RegExp | null, place: Place | undefined) {
  const mark = useEffectEvent(() => {
    const rows = wanted ? [...(box.current?.querySelectorAll("[data-index]") ?? [])] : [];
    CSS.highlights.set("found", new Highlight(...rows.flatMap((row) => rangesIn(row, wanted!))));
    const current = wanted && place && rangeOf(box, wanted, place);
    CSS.highlights.set("found-current", new Highlight(...(current ? [current] : [])));
  });
  useEffect(() => mark(), [wanted, place?.turn, place?.nth]);
  useEffect(() => {
    let frame = 0;
    const watch = new MutationObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => mark());
    });
    watch.observe(box.current!, { childList: true, subtree: true, characterData: true });
    return () => {
      cancelAnimationFrame(frame);
      watch.disconnect();
      CSS.highlights.delete("found");
      CSS.highlights.delete("found-current");
    };
  }, [box]);
}

/** Brings the chosen match into sight: first its turn, then, when nothing moves any more, the words. */
function useInSight(box: Box, wanted: RegExp | null, place: Place | undefined, show: (turn: number) => void) {
  const bring = useEffectEvent(show);
  const frame = useRef(0);
  useEffect(() => {
    if (!wanted || !place) return;
    let still = 0;
    let last = -1;
    const settle = (left: number) => {
      const top = box.current?.scrollTop ?? 0;
      const range = rangeOf(box, wanted, place);
      still = range && top === last ? still + 1 : 0;
      last = top;
      if (still >= STILL) range!.startContainer.parentElement!.scrollIntoView({ block: "center" });
      else if (left > 0) frame.current = requestAnimationFrame(() => settle(left - 1));
    };
    const range = rangeOf(box, wanted, place);
    if (!range || !isInSight(range, box.current!)) {
      bring(place.turn);
      settle(PATIENCE);
    }
    return () => cancelAnimationFrame(frame.current);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a place is its numbers
  }, [box, wanted, place?.turn, place?.nth]);
}

function isInSight(range: Range, box: Element): boolean {
  const { top, bottom } = range.getBoundingClientRect();
  const around = box.getBoundingClientRect();
  return top >= around.top + 60 && bottom <= around.bottom;
}
