"use client";
import { TriangleAlert } from "lucide-react";
import { useT } from "@/i18n";
import { Note } from "../parts";
import type { Finding } from "./api";

/** Findings of a scan, in words; renders nothing if there are none. */
export function Findings({ findings }: { findings: readonly Finding[] }) {
  const t = useT("skills.findings");
  if (findings.length === 0) return null;
  return (
    <Note tone="warning" icon={<TriangleAlert aria-hidden />}>
      <p className="font-medium">{t("title", { n: findings.length })}</p>
      <ul className="mt-1 flex flex-col gap-2">
        {findings.map(({ file, line, rule, why, text }) => (
          <li key={`${file}:${line}:${why}`} className="text-foreground">
            {rule ? t(`rule.${rule}`) : why}
            <span className="ml-1.5 font-mono text-xs break-all">{line ? `${file}:${line}` : file}</span>
            {text && (
              <code className="mt-0.5 block rounded bg-background/60 px-2 py-1 font-mono text-xs break-all whitespace-pre-wrap">
                {text}
              </code>
            )}
          </li>
        ))}
      </ul>
      <p className="mt-2 text-foreground/80">{t("advice")}</p>
    </Note>
  );
}
