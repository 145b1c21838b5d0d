"use client";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import {
  Suspense,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type ReactNode,
  type RefObject,
  type UIEvent,
} from "react";
import { flushSync } from "react-dom";
import { cn } from "@/lib/cn";
import { afterPage } from "@/lib/late";
import { toast } from "@/ui/toast";
import { useRunSettings } from "@/lib/run-settings";
import { useT } from "@/i18n";
import { onFind, onStep } from "@/lib/compose";
import { SHORTCUTS, useShortcut } from "@/lib/shortcuts";
import { Button } from "@/ui/button";
import { copyText } from "@/ui/copy-button";
import { Announcer } from "./announcer";
import { ChatProvider } from "./chat-context";
import { FindContext, patternOf, placesOf } from "./find/find";
import { LoadingTurns, ThreadFailed, ThreadMissing } from "./list-states";
import { preloadMarkdown } from "@/features/markdown";
import { useSession, type Session } from "./thread/session";
import { StepContext, stepIn, type ShownStep } from "./steps/shown-step";
import { TurnView, Working } from "./turn";
import type { Turn } from "./thread/turns";

const FindBar = afterPage(() => import("./find/find-bar"));
const ShowStep = afterPage(() => import("./steps/show-step"));
const InterruptCards = afterPage(() => import("./interrupt"));

interface TurnListProps {
  /** Opens a file of the thread beside the chat. */
  onOpenFile: (path: string) => void;
}

/** The conversation. Only what is in sight is in the page; the end stays in sight while it grows, unless one scrolls up. */
export function TurnList({ onOpenFile }: TurnListProps) {
  const session = useSession();
  const settings = useRunSettings(session.threadId);
  const common = useT("common");
  const answer = session.turns.findLast((turn) => turn.answer)?.answer?.text;
  const copy = async () => {
    if (answer && (await copyText(answer))) toast.success(common("copied"));
  };
  useShortcut(SHORTCUTS.copyAnswer, () => void copy(), { enabled: answer !== undefined });
  useEffect(preloadMarkdown, []);
  return (
    <ChatProvider session={session} settings={settings} onOpenFile={onOpenFile}>
      <Announcer session={session} />
      <Body session={session} />
    </ChatProvider>
  );
}

function Body({ session }: { session: Session }) {
  if (session.phase === "missing") return <ThreadMissing />;
  if (session.phase === "failed") return <ThreadFailed error={session.loadError} retry={session.reload} />;
  if (session.phase === "loading") return <LoadingTurns />;
  return <Rows key={session.threadId} session={session} />;
}

interface Row {
  key: string;
  /** A guess of its height, until it is measured. */
  height: number;
  content: ReactNode;
}

function Rows({ session }: { session: Session }) {
  const { turns, running, connection, retrying, silence, interrupts } = session;
  const rows: Row[] = turns.map((turn, i) => {
    const last = i === turns.length - 1;
    // The same for all versions of a message: another one that is shown is drawn in its place.
    const place = `after:${turns[i - 1]?.id ?? ""}`;
    const height = 140 + Math.min(1200, (turn.answer?.text.length ?? 0) / 3.2);
    return {
      key: place,
      height,
      content: <TurnView turn={turn} place={place} last={last} busy={running} />,
    };
  });
  if (interrupts.length) rows.push({ key: "interrupts", height: 300, content: <Decisions /> });
  const pieces = turns.reduce(
    (sum, turn) => sum + turn.steps.length + (turn.answer ? 1 : 0) + 1,
    interrupts.length,
  );
  const asked = turns.at(-1)?.question;
  const { startedAt = null, runId = null } = turns.at(-1) ?? {};
  return (
    <>
      <VirtualRows rows={rows} turns={turns} pieces={pieces} sent={asked?.sending ? asked.id : null} />
      {running && <Working {...{ runId, startedAt, connection, retrying, silence }} />}
    </>
  );
}

const Decisions = () => (
  <Suspense>
    <InterruptCards />
  </Suspense>
);

interface VirtualRowsProps {
  rows: Row[];
  turns: readonly Turn[];
  /** Number of messages and steps, from which the number of new ones is computed. */
  pieces: number;
  /** The message that the person has just sent: it is brought into sight. */
  sent: string | null;
}

function VirtualRows({ rows, turns, pieces, sent }: VirtualRowsProps) {
  const t = useT("chat");
  const box = useRef<HTMLDivElement>(null);
  const [left, setLeft] = useState<number | null>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- rows are memoised by themselves
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (i) => rows[i]!.height,
    getItemKey: (i) => rows[i]!.key,
    overscan: 3,
    paddingStart: 24,
    initialOffset: () => Number.MAX_SAFE_INTEGER,
  });
  // Who looks at the end goes on looking at it, whether the text grows or the field below. Within the frame: nothing jumps.
  const atEnd = useRef(true);
  const lastTop = useRef(0);
  /** The least height of all rows since the last scroll: where the end was, if rows shrank and grew again at once. */
  const lowest = useRef(Infinity);
  useLayoutEffect(() => {
    lowest.current = Math.min(lowest.current, virtualizer.getTotalSize());
  });
  const [observer, setObserver] = useState<ResizeObserver | null>(null);
  useEffect(() => {
    const scroller = box.current!;
    const watch = new ResizeObserver(() => {
      if (atEnd.current) scroller.scrollTop = scroller.scrollHeight;
    });
    watch.observe(scroller);
    setObserver(watch);
    return () => watch.disconnect();
  }, []);
  // Or else the virtualizer strives for the first offset, beyond the end, whenever something grows.
  useEffect(() => virtualizer.scrollToEnd(), [virtualizer]);
  useEffect(() => {
    if (sent) virtualizer.scrollToEnd();
  }, [sent, virtualizer]);
  const onScroll = ({ currentTarget }: UIEvent) => {
    const { scrollTop, scrollHeight, clientHeight } = currentTarget;
    const rest = scrollHeight - scrollTop - clientHeight;
    // By the person: else it is the text that grew.
    const moved = scrollTop < lastTop.current && scrollTop + clientHeight < lowest.current - 1;
    if (rest <= 64) atEnd.current = true;
    else if (moved) atEnd.current = false;
    else if (atEnd.current) currentTarget.scrollTop = scrollHeight;
    lastTop.current = scrollTop;
    lowest.current = virtualizer.getTotalSize();
    const away = rest > 120; // the virtualizer hears of it later than this
    if (away !== (left !== null)) setLeft(away ? pieces : null);
  };
  const printing = usePrinting();
  const shown = printing
    ? rows.map(({ key }, index) => ({ key, index, start: 0 }))
    : virtualizer.getVirtualItems();
  const [query, setQuery] = useState<string | null>(null);
  const wanted = useMemo(() => patternOf(query ?? ""), [query]);
  const places = useMemo(() => (wanted ? placesOf(turns, wanted) : []), [turns, wanted]);
  const [step, setStep] = useState<ShownStep | null>(null);
  const onWish = useEffectEvent((ids: readonly string[]) => {
    const found = stepIn(turns, ids);
    setStep(found);
    return found !== null;
  });
  useEffect(() => onStep((ids) => onWish(ids)), []);
  const show = (turn: number) => {
    atEnd.current = false; // or what grows meanwhile would lead back
    virtualizer.scrollToIndex(turn, { align: "center" });
  };
  const find = () => setQuery((before) => before ?? "");
  useEffect(() => onFind(find), []);
  useShortcut(SHORTCUTS.find, find, {
    // The browser finds by itself what is all in the page. A second time, it is asked for the browser's own.
    enabled: virtualizer.getVirtualItems().length < rows.length,
    when: isInChat,
  });
  return (
    <div className="relative flex min-h-0 flex-1 flex-col print:block">
      {query !== null && (
        <Suspense>
          <FindBar
            {...{ query, wanted, places, box }}
            onQuery={setQuery}
            show={show}
            onClose={() => setQuery(null)}
          />
        </Suspense>
      )}
      {step && (
        <Suspense>
          <ShowStep step={step} box={box} show={show} />
        </Suspense>
      )}
      <div
        ref={box}
        role="log"
        aria-live="off"
        aria-label={t("conversation")}
        tabIndex={0}
        className="min-h-0 flex-1 overflow-x-hidden overflow-y-auto overscroll-contain [overflow-anchor:none] focus-visible:outline-none print:h-auto print:overflow-visible"
        onScroll={onScroll}
        onClickCapture={({ target }) => {
          // What one opens stays where it is.
          if (!(target as Element).closest("[aria-expanded]")) return;
          atEnd.current = false;
          setTimeout(() => {
            const { scrollTop, scrollHeight, clientHeight } = box.current ?? document.body;
            atEnd.current = scrollHeight - scrollTop - clientHeight <= 64;
          }, 300);
        }}
      >
        <div
          className="relative mx-auto w-full max-w-3xl"
          style={printing ? undefined : { height: virtualizer.getTotalSize() }}
        >
          {shown.map((row) => (
            <div
              key={row.key}
              ref={(element) => {
                virtualizer.measureElement(element);
                if (element) observer?.observe(element);
              }}
              data-index={row.index}
              data-passing=""
              className={cn("w-full px-4 last:pb-4 sm:px-6", !printing && "absolute top-0 left-0")}
              style={printing ? undefined : { transform: `translateY(${row.start}px)` }}
            >
              <FindContext value={wanted}>
                <StepContext value={step}>{rows[row.index]?.content}</StepContext>
              </FindContext>
            </div>
          ))}
        </div>
      </div>
      {left !== null && (
        <JumpToLatest
          count={Math.max(0, pieces - left)}
          box={box}
          onJump={() => virtualizer.scrollToEnd({ behavior: "auto" })}
        />
      )}
    </div>
  );
}

/** Everything is put on paper, in light colours. It has to be there when the event is over. */
function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const { classList } = document.documentElement;
    let dark = false;
    const before = () => {
      dark = classList.contains("dark");
      classList.remove("dark");
      flushSync(() => setPrinting(true));
    };
    const after = () => {
      if (dark) classList.add("dark");
      setPrinting(false);
    };
    window.addEventListener("beforeprint", before);
    window.addEventListener("afterprint", after);
    return () => {
      window.removeEventListener("beforeprint", before);
      window.removeEventListener("afterprint", after);
    };
  }, []);
  return printing;
}

const isInChat = (target: EventTarget | null) =>
  target === document.body ||
  (target instanceof Element && target.closest("#conversation") !== null && !target.matches("[data-find]"));

interface JumpProps {
  count: number;
  box: RefObject<HTMLDivElement | null>;
  onJump: () => void;
}

function JumpToLatest({ count, box, onJump }: JumpProps) {
  const t = useT("chat");
  const jump = () => {
    onJump();
    box.current?.focus({ preventScroll: true });
  };
  return (
    // Where the conversation is as wide as the screen it would stand on what one reads.
    <div className="pointer-events-none absolute inset-x-0 bottom-3 flex shrink-0 justify-center max-sm:static max-sm:py-1">
      <Button
        variant="outline"
        size="sm"
        aria-label={count ? `${t("latest")}: ${t("latestNew", { n: count })}` : t("latest")}
        className="pointer-events-auto animate-rise rounded-full border-0 bg-popover px-3 shadow-float motion-reduce:animate-none"
        onClick={jump}
      >
        <ArrowDown aria-hidden />
        {count > 0 && <span className="text-xs tabular-nums">{t("latestNew", { n: count })}</span>}
      </Button>
    </div>
  );
}
