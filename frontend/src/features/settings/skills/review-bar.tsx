"use client";
import { ShieldCheck, ShieldQuestion } from "lucide-react";
import { useState } from "react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Note } from "../parts";
import type { Installed, Review } from "./api";

interface ReviewBarProps {
  installed: Installed;
  onSwitchOn: () => Promise<unknown>;
  onRemove: () => void;
}

/** Above a skill that was installed just now: it does not count yet. */
export function ReviewBar({ installed, onSwitchOn, onRemove }: ReviewBarProps) {
  const t = useT("skills.review");
  const [pending, setPending] = useState(false);
  const { findings, review } = installed;
  const isDoubtful = findings.length > 0 || (review !== null && review.verdict !== "harmless");
  const switchOn = async () => {
    setPending(true);
    await onSwitchOn();
    setPending(false);
  };
  return (
    <Note
      tone={isDoubtful ? "warning" : "info"}
      icon={isDoubtful ? <ShieldQuestion aria-hidden /> : <ShieldCheck aria-hidden />}
    >
      <p role="status" className="font-medium">
        {t(isDoubtful ? "doubtful" : "installed")}
      </p>
      <p className="mt-0.5 text-foreground/80">{t("look")}</p>
      {review && <Opinion review={review} />}
      <div className="mt-3 flex flex-wrap gap-2">
        <Button size="sm" pending={pending} onClick={() => void switchOn()}>
          {t("switchOn")}
        </Button>
        <Button size="sm" variant="outline" className="text-foreground" onClick={onRemove}>
          {t("remove")}
        </Button>
      </div>
    </Note>
  );
}

/** A model's opinion of a skill, or of a change. */
export function Opinion({ review }: { review: Review }) {
  const t = useT("skills.review");
  return (
    <p className="mt-1.5 text-[13px] leading-relaxed break-words">
      <span className="font-medium">{t(`verdict.${review.verdict}`, { model: review.model })}</span>
      {review.text && ` ${review.text}`}
    </p>
  );
}
