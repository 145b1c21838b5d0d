"use client";
import { marked } from "@/lib/marks";
import { LongText } from "./long-text";
import { outlineOf } from "./outline";

/** Arguments as a form has them, one below the other: a text as its lines, anything else as an outline. */
export function Fields({ args }: { args: Record<string, unknown> }) {
  return (
    <dl className="divide-y rounded-lg border bg-code text-code-foreground">
      {Object.entries(args).map(([name, value]) => (
        <div key={name} className="px-3 py-2 sm:grid sm:grid-cols-[minmax(6rem,max-content)_1fr] sm:gap-x-4">
          <dt
            dir="ltr"
            className="max-w-48 font-mono text-xs leading-5 [overflow-wrap:anywhere] text-muted-foreground"
          >
            {marked(name)}
          </dt>
          <dd className="min-w-0">
            <LongText text={outlineOf(value)} className="p-0" />
          </dd>
        </div>
      ))}
    </dl>
  );
}
