import { Logo } from "@/ui/logo";

/** What the page looks like before its code and data are there. It is part of the HTML, so it is painted at once. */
export function Shell() {
  return (
    <div role="status" aria-label="DeerFlow" className="flex h-dvh bg-background">
      <div className="hidden w-66 shrink-0 border-r border-sidebar-border bg-sidebar md:block" />
      <div className="flex flex-1 flex-col">
        <div className="flex flex-1 items-center justify-center">
          <Logo className="size-8 animate-breathe text-muted-foreground/60" />
        </div>
        <div className="mx-auto w-full max-w-3xl px-3 pb-9 sm:px-4">
          <div className="h-26 rounded-2xl border border-input bg-card" />
        </div>
      </div>
    </div>
  );
}
