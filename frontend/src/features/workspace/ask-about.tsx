"use client";
import { MessageSquareQuote } from "lucide-react";
import { useEffect, useState } from "react";
import { createPortal } from "react-dom";
import { useT } from "@/i18n";
import { quoteInComposer } from "@/lib/compose";
import { usePanel } from "@/lib/route";
import { useMedia, useWideScreen } from "@/lib/wide-screen";
import { Button } from "@/ui/button";
import { selectedPassage, type Passage } from "./passage";

/** Beside a passage that was selected in an answer or a file: quotes it in the message, with its place. */
export default function AskAbout() {
  const t = useT("chat.ask");
  const panel = usePanel();
  const wide = useWideScreen();
  const beside = useMedia("(hover: hover)");
  const [passage, setPassage] = useState<Passage | null>(null);
  useEffect(() => watchSelection(setPassage), []);
  if (!passage) return null;
  const ask = () => {
    quoteInComposer(passage.text, placeOf(t, passage.place));
    window.getSelection()?.removeAllRanges();
    setPassage(null); // at once, or a press that follows would quote it again
    if (!wide && passage.place.kind === "file") panel.set(null);
  };
  const { rect } = passage;
  const isBelow = rect.top < 96;
  const style = beside
    ? {
        left: Math.min(Math.max(rect.left + rect.width / 2, 90), window.innerWidth - 90),
        top: isBelow ? Math.min(rect.bottom + 8, window.innerHeight - 48) : rect.top - 8,
      }
    : undefined;
  const place = beside
    ? `-translate-x-1/2 ${isBelow ? "" : "-translate-y-full"}`
    : "bottom-32 left-1/2 -translate-x-1/2"; // a phone has its own menu beside the passage
  return createPortal(
    <div className={`fixed z-60 print:hidden ${place}`} style={style}>
      <Button
        size="sm"
        variant="outline"
        className="animate-rise border-0 bg-popover shadow-float motion-reduce:animate-none"
        onPointerDown={(event) => event.preventDefault()} // the selection stays
        onClick={ask}
      >
        <MessageSquareQuote aria-hidden />
        {t("button")}
      </Button>
    </div>,
    passage.around.closest("[role=dialog]") ?? document.body,
  );
}

type Texts = ReturnType<typeof useT<"chat.ask">>;

function placeOf(t: Texts, place: Passage["place"]): string {
  if (place.kind === "answer") return place.question ? t("answer", { question: place.question }) : t("yours");
  const { path, section, lines } = place;
  if (lines) return t("lines", { path, from: lines[0], to: lines[1] });
  return section ? t("section", { path, section }) : path;
}

/** Calls `show` with what is selected when the person has done so, and with null when it is no more, or has moved. */
function watchSelection(show: (passage: Passage | null) => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  let pressed = false;
  const look = () => {
    clearTimeout(timer);
    timer = setTimeout(() => !pressed && show(selectedPassage(document.getSelection())), 120);
  };
  const press = (event: Event) => {
    pressed = event.type === "pointerdown";
    look();
  };
  const events = { selectionchange: look, pointerdown: press, pointerup: press, pointercancel: press };
  for (const [name, listener] of Object.entries(events)) document.addEventListener(name, listener);
  document.addEventListener("scroll", look, true);
  return () => {
    clearTimeout(timer);
    for (const [name, listener] of Object.entries(events)) document.removeEventListener(name, listener);
    document.removeEventListener("scroll", look, true);
  };
}
