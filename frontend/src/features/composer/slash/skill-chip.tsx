"use client";
import { BookOpenText, X } from "lucide-react";
import { useLocale, useT } from "@/i18n";
import { aboutSkill, useSkills } from "@/lib/skills";

/** The skill that the message begins with. */
export default function SkillChip({ name, onRemove }: { name: string; onRemove: () => void }) {
  const t = useT("composer");
  const [locale] = useLocale();
  const skill = useSkills().data?.find((one) => one.name === name);
  return (
    <div className="flex px-3 pt-3">
      <div
        role="group"
        aria-label={`${t("skill")}: ${name}`}
        title={skill && aboutSkill(skill, locale)}
        className="flex h-8 max-w-full min-w-0 animate-rise items-center gap-1.5 rounded-lg bg-primary-soft pl-2.5 text-[13px] font-medium text-primary pointer-coarse:h-10"
      >
        <BookOpenText aria-hidden className="size-4 shrink-0" />
        <span className="truncate">{name}</span>
        <button
          type="button"
          aria-label={t("removeFile", { name })}
          title={t("removeFile", { name })}
          onClick={onRemove}
          className="flex size-8 shrink-0 items-center justify-center rounded-lg transition-colors hover:bg-primary/10 pointer-coarse:size-10"
        >
          <X aria-hidden className="size-3.5" />
        </button>
      </div>
    </div>
  );
}
