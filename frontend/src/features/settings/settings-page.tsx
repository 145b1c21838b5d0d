"use client";
import { ArrowLeft, ChevronLeft, ChevronRight } from "lucide-react";
import Link from "next/link";
import { useRouter } from "next/navigation";
import { Suspense, useEffect, useRef, type MouseEvent } from "react";
import { useAccount } from "@/features/auth";
import { Decisions, WaitingButton } from "@/features/decisions";
import { useLiveLists } from "@/features/live";
import { LateTexts, useShownLocale, useT, type LateMessages } from "@/i18n";
import { cn } from "@/lib/cn";
import { preload } from "@/lib/late";
import { isPlainClick, settingsPath } from "@/lib/route";
import { Skeleton } from "@/ui/skeleton";
import { SECTIONS } from "./nav";
import type { Section } from "./parts/section";

const TEXTS: LateMessages = { en: () => import("./en"), zh: () => import("./zh") };

interface SettingsPageProps {
  /** null at /settings: wide screens then show the first one, narrow ones the list. */
  section: string | null;
}

export function SettingsPage({ section }: SettingsPageProps) {
  return (
    <LateTexts of={TEXTS} fallback={<div className="h-dvh bg-background" />}>
      <Settings section={section} />
    </LateTexts>
  );
}

function Settings({ section }: SettingsPageProps) {
  const t = useT("settings");
  const locale = useShownLocale();
  const isAdmin = useAccount().data?.system_role === "admin";
  const sections = SECTIONS.filter((one) => isAdmin || !one.adminOnly);
  const chosen = sections.find((one) => one.id === section) ?? sections[0]!;
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    content.current?.scrollTo(0, 0);
  }, [chosen.id]);
  const title = chosen.title[locale];
  useEffect(() => {
    document.title = `${title} · ${t("title")} · DeerFlow`;
  }, [t, title]);
  useEffect(() => preload(chosen.load), [chosen]); // while its texts are on their way
  useLiveLists();
  const isList = section === null;
  return (
    <div className="flex h-dvh flex-col md:flex-row">
      <aside
        className={cn(
          "flex-col overflow-y-auto border-sidebar-border bg-sidebar text-sidebar-foreground md:flex md:w-60 md:shrink-0 md:border-r",
          isList ? "flex flex-1 md:flex-none" : "hidden",
        )}
      >
        <div className="flex flex-col gap-3 p-3">
          <BackToChat />
          <Suspense>
            <WaitingButton />
          </Suspense>
          <h1 className="px-2.5 text-base font-semibold md:sr-only">{t("title")}</h1>
        </div>
        <Nav sections={sections} chosen={chosen} marked={!isList} />
      </aside>
      <main
        ref={content}
        tabIndex={0}
        className={cn("flex-1 overflow-y-auto -outline-offset-2", isList && "hidden md:block")}
      >
        <div className="mx-auto flex max-w-2xl flex-col gap-7 px-4 pt-3 pb-16 sm:px-8 md:pt-12">
          <header className="flex flex-col gap-1">
            <div className="flex items-center justify-between md:hidden">
              <SectionLink
                id={null}
                className="-ml-1.5 flex h-10 w-fit items-center gap-1 pr-2 text-[13px] text-muted-foreground"
              >
                <ChevronLeft aria-hidden className="size-4" />
                {t("allSettings")}
              </SectionLink>
              <Suspense>
                <WaitingButton small />
              </Suspense>
            </div>
            <h1 className="text-2xl font-semibold">{title}</h1>
            <p className="leading-relaxed text-muted-foreground">{chosen.about[locale]}</p>
          </header>
          <LateTexts key={chosen.id} of={chosen.texts} fallback={<Skeleton className="h-40" />}>
            <Suspense fallback={<Skeleton className="h-40" />}>
              <chosen.Content />
            </Suspense>
          </LateTexts>
        </div>
      </main>
      <Suspense>
        <Decisions />
      </Suspense>
    </div>
  );
}

function Nav({ sections, chosen, marked }: { sections: Section[]; chosen: Section; marked: boolean }) {
  const t = useT("settings");
  const locale = useShownLocale();
  return (
    <nav aria-label={t("nav")} className="flex flex-col gap-5 px-3 pb-6">
      {(["personal", "own", "server"] as const).map((group) => (
        <div key={group} className="flex flex-col gap-0.5">
          <div className="px-2.5 pb-1 text-xs font-medium text-muted-foreground">{t(`group.${group}`)}</div>
          {sections
            .filter((one) => one.group === group)
            .map(({ id, icon: Icon, title }) => {
              const isChosen = id === chosen.id;
              return (
                <SectionLink
                  key={id}
                  id={id}
                  current={isChosen}
                  className={cn(
                    "flex h-11 items-center gap-2.5 rounded-lg px-2.5 transition-colors hover:bg-sidebar-accent md:h-9 md:text-[13px] pointer-coarse:h-11",
                    isChosen && "md:bg-sidebar-accent md:font-medium md:text-sidebar-accent-foreground",
                    isChosen && marked && "bg-sidebar-accent",
                  )}
                >
                  <Icon aria-hidden className="size-4 shrink-0 text-muted-foreground" />
                  <span className="flex-1 truncate">{title[locale]}</span>
                  <ChevronRight aria-hidden className="size-4 text-muted-foreground md:hidden" />
                </SectionLink>
              );
            })}
        </div>
      ))}
    </nav>
  );
}

interface SectionLinkProps {
  id: Section["id"] | null;
  current?: boolean;
  className: string;
  children: React.ReactNode;
}

/** Changes the address without asking the server; "back" leads out of the settings, not through all sections seen. */
function SectionLink({ id, current, className, children }: SectionLinkProps) {
  const path = settingsPath(id ?? undefined);
  const go = (event: MouseEvent) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    window.history.replaceState(null, "", path);
  };
  return (
    <a href={path} onClick={go} aria-current={current ? "page" : undefined} className={className}>
      {children}
    </a>
  );
}

function BackToChat() {
  const t = useT("settings");
  const router = useRouter();
  const go = (event: MouseEvent) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    router.push(lastChat());
  };
  return (
    <Link
      href="/chats"
      onClick={go}
      className="flex h-9 w-fit items-center gap-2 rounded-lg px-2.5 text-[13px] text-muted-foreground transition-colors hover:bg-sidebar-accent hover:text-sidebar-accent-foreground pointer-coarse:h-11"
    >
      <ArrowLeft aria-hidden className="size-4" />
      {t("backToChat")}
    </Link>
  );
}

interface Entry {
  index: number;
  url: string | null;
}

/** The chat from which the settings were opened, where the browser tells its history. */
function lastChat(): string {
  const history = (window as { navigation?: { entries(): Entry[]; currentEntry: Entry | null } }).navigation;
  const before = history?.entries().slice(0, history.currentEntry?.index ?? 0) ?? [];
  for (const entry of before.reverse()) {
    const url = new URL(entry.url ?? "about:blank", window.location.origin);
    if (url.pathname.startsWith("/chats")) return url.pathname + url.search;
  }
  return "/chats";
}
