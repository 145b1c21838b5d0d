"use client";
import type { ReactNode } from "react";
import { useT } from "@/i18n";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Facts } from "../parts";
import type { SkillFiles, SkillText } from "./api";
import { Findings } from "./findings";

interface AbilitiesProps {
  skill: SkillText;
  /** Undefined: not known yet. */
  folder: SkillFiles | undefined;
  onFiles: () => void;
  onSecrets: () => void;
}

const PROGRAM = /^scripts\/|\.(?:sh|bash|py|js|mjs|ts|rb|pl|ps1|php)$/i;

/** Abilities of a skill, as far as they can be seen. */
export function Abilities({ skill, folder, onFiles, onSecrets }: AbilitiesProps) {
  const t = useT("skills.abilities");
  const scripts = folder?.files.filter(({ path }) => PROGRAM.test(path)).length ?? 0;
  const tools = skill.allowed_tools;
  const facts: { name: string; value: ReactNode }[] = [
    {
      name: t("tools"),
      value: tools === null ? t("allTools") : tools.length ? <Names of={tools} /> : t("noTools"),
    },
    {
      name: t("scripts"),
      value: scripts ? (
        <Button
          variant="link"
          size="xs"
          className="h-auto p-0 text-sm pointer-coarse:h-auto pointer-coarse:px-0"
          onClick={onFiles}
        >
          {t("scriptCount", { n: scripts })}
        </Button>
      ) : (
        t("noScripts")
      ),
    },
    {
      name: t("secrets"),
      value: skill.secrets.length ? (
        <Button
          variant="link"
          size="xs"
          className="h-auto p-0 text-sm pointer-coarse:h-auto pointer-coarse:px-0"
          onClick={onSecrets}
        >
          {skill.secrets.join(", ")}
        </Button>
      ) : (
        t("noSecrets")
      ),
    },
    ...(skill.compatibility ? [{ name: t("compatibility"), value: skill.compatibility }] : []),
    ...(skill.license ? [{ name: t("license"), value: skill.license }] : []),
    ...(skill.category === "custom" && folder?.findings.length === 0
      ? [{ name: t("scan"), value: t("nothingFound") }]
      : []),
  ];
  return (
    <section aria-label={t("title")} className="flex flex-col gap-3">
      <Facts items={facts} />
      <Findings findings={folder?.findings ?? []} />
    </section>
  );
}

const Names = ({ of }: { of: readonly string[] }) => (
  <span className="flex flex-wrap justify-end gap-1">
    {of.map((name) => (
      <Badge
        key={name}
        variant="outline"
        className="h-auto max-w-full py-0.5 font-mono break-all whitespace-normal"
      >
        {name}
      </Badge>
    ))}
  </span>
);
