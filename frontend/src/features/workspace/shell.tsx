"use client";
import { useT } from "@/i18n";
import { carryOn, EARLY_FIELD } from "@/lib/early";
import { Logo } from "@/ui/logo";

/** The page before its code and data have arrived. It is part of the HTML: painted, and ready for input, at once. */
export function Shell() {
  const t = useT("common");
  return (
    <div className="flex h-dvh bg-background">
      <div className="hidden w-66 shrink-0 border-r border-sidebar-border bg-sidebar md:block" />
      <div className="flex flex-1 flex-col">
        <div role="status" aria-label="DeerFlow" className="flex flex-1 items-center justify-center">
          <Logo className="size-8 animate-breathe text-muted-foreground/60" />
        </div>
        <div className="mx-auto w-full max-w-3xl px-3 pb-9 sm:px-4">
          <textarea
            id={EARLY_FIELD}
            ref={carryOn}
            dir="auto"
            aria-label={t("earlyMessage")}
            className="block h-26 w-full resize-none rounded-2xl border border-input bg-card px-4 py-3.5 text-[15px] leading-6 outline-none focus:border-ring/60 focus:ring-3 focus:ring-ring/8 pointer-coarse:text-base"
          />
        </div>
      </div>
    </div>
  );
}
