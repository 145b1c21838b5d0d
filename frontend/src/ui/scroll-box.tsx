"use client";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { cn } from "@/lib/cn";

interface ScrollBoxProps {
  /** Names it for those who come to it by keyboard. */
  label: string;
  className?: string;
  children: ReactNode;
}

/** A row that may be wider than its place: it scrolls by itself, by keyboard too, and fades where there is more of it. */
export function ScrollBox({ label, className, children }: ScrollBoxProps) {
  const box = useRef<HTMLDivElement>(null);
  const [more, setMore] = useState({ before: false, after: false });
  const look = () => {
    const { scrollLeft, clientWidth, scrollWidth } = box.current!;
    const passed = Math.abs(scrollLeft); // negative in a text that runs from right to left
    const before = passed > 1;
    const after = passed + clientWidth < scrollWidth - 1;
    setMore((known) => (known.before === before && known.after === after ? known : { before, after }));
  };
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(box.current!);
    for (const child of box.current!.children) observer.observe(child);
    return () => observer.disconnect();
  }, []);
  const isWide = more.before || more.after;
  return (
    <div
      ref={box}
      {...(isWide && { role: "region", "aria-label": label, tabIndex: 0 })}
      data-before={more.before || undefined}
      data-after={more.after || undefined}
      className={cn("fade-sides overflow-x-auto", className)}
      onScroll={look}
    >
      {children}
    </div>
  );
}
