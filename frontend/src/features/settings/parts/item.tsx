"use client";
import { ArrowLeft } from "lucide-react";
import { useEffect, useRef, type MouseEvent, type ReactNode } from "react";
import { isPlainClick } from "@/lib/route";
import { Button } from "@/ui/button";
import { itemPath } from "./use-item";

interface ItemHeadProps {
  title: string;
  text: string;
  /** Label of the way back. */
  back: string;
  onBack: () => void;
  badges?: ReactNode;
  /** Actions for it. */
  children: ReactNode;
}

/** The head of one thing of a section; the focus begins there. */
export function ItemHead({ title, text, back, onBack, badges, children }: ItemHeadProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <header className="flex flex-col gap-3">
      <Button variant="ghost" size="sm" className="-ml-2.5 w-fit text-muted-foreground" onClick={onBack}>
        <ArrowLeft aria-hidden />
        {back}
      </Button>
      <div className="flex flex-col gap-1.5">
        <div className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
          <h2
            ref={heading}
            tabIndex={-1}
            className="min-w-0 font-display text-xl font-semibold break-words outline-none"
          >
            {title}
          </h2>
          {badges}
        </div>
        {text && <p className="text-sm leading-relaxed break-words text-muted-foreground">{text}</p>}
      </div>
      <div className="flex flex-wrap items-center gap-2">{children}</div>
    </header>
  );
}

interface ItemLinkProps {
  name: string;
  /** It was looked at just now: the focus comes back to it. */
  wasOpen: boolean;
  onOpen: (name: string) => void;
  children: ReactNode;
}

/** The way to one thing in a list; the whole row can be pressed. */
export function ItemLink({ name, wasOpen, onOpen, children }: ItemLinkProps) {
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (wasOpen) link.current?.focus();
  }, [wasOpen]);
  const go = (event: MouseEvent) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    onOpen(name);
  };
  return (
    <a
      ref={link}
      href={itemPath(name)}
      onClick={go}
      className="text-sm font-medium break-words outline-none after:absolute after:inset-0 after:rounded-[inherit] hover:underline focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-ring"
    >
      {children}
    </a>
  );
}
