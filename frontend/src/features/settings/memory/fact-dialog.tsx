"use client";
import { useState } from "react";
import { useT } from "@/i18n";
import { Dialog, DialogContent } from "@/ui/dialog";
import { Select, SelectContent, SelectItem, SelectTrigger, SelectValue } from "@/ui/select";
import { Textarea } from "@/ui/textarea";
import { DialogForm, Field } from "../parts/dialog-form";
import type { Fact } from "./api";
import { CATEGORIES, isKnown, levelOf, type Level } from "./facts";

export type Written = Pick<Fact, "content" | "category" | "confidence">;

interface FactDialogProps {
  /** "new", or the one that is changed; null: closed. */
  fact: Fact | "new" | null;
  onClose: () => void;
  /** Errors that it throws are shown. */
  onSave: (written: Written) => Promise<unknown>;
}

export function FactDialog({ fact, onClose, onSave }: FactDialogProps) {
  return (
    <Dialog open={fact !== null} onOpenChange={(open) => !open && onClose()}>
      <DialogContent className="sm:max-w-lg">
        {fact && <FactForm fact={fact === "new" ? null : fact} onSave={onSave} />}
      </DialogContent>
    </Dialog>
  );
}

const MAX_CHARS = 2000;
/** Confidence of each level. */
const CONFIDENCE: Record<Level, number> = { veryHigh: 0.95, high: 0.75, normal: 0.5 };

function FactForm({ fact, onSave }: { fact: Fact | null; onSave: FactDialogProps["onSave"] }) {
  const t = useT("memory");
  const [content, setContent] = useState(fact?.content ?? "");
  const [category, setCategory] = useState(fact?.category ?? "preference");
  const before = fact && levelOf(fact.confidence);
  const [level, setLevel] = useState<Level>(before ?? "veryHigh");
  const categories = isKnown(category) ? CATEGORIES : [...CATEGORIES, category];
  const save = () => {
    const confidence = fact && level === before ? fact.confidence : CONFIDENCE[level];
    return onSave({ content: content.trim(), category, confidence });
  };
  return (
    <DialogForm
      title={t(fact ? "editTitle" : "addTitle")}
      text={fact ? undefined : t("addText")}
      confirm={t(fact ? "save" : "add")}
      ready={content.trim() !== ""}
      onSubmit={save}
    >
      <Field label={t("content")}>
        {(given) => (
          <Textarea
            {...given}
            autoFocus
            required
            maxLength={MAX_CHARS}
            placeholder={t("contentPlaceholder")}
            value={content}
            onChange={(event) => setContent(event.target.value)}
          />
        )}
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t("categoryLabel")}>
          {(given) => (
            <Select value={category} onValueChange={setCategory}>
              <SelectTrigger {...given}>
                <SelectValue />
              </SelectTrigger>
              <SelectContent>
                {categories.map((one) => (
                  <SelectItem key={one} value={one}>
                    {isKnown(one) ? t(`category.${one}`) : one}
                  </SelectItem>
                ))}
              </SelectContent>
            </Select>
          )}
        </Field>
        <Field label={t("levelLabel")}>
          {(given) => (
            <Select value={level} onValueChange={(next) => setLevel(next as Level)}>
              <SelectTrigger {...given}>
                <SelectValue />
              </SelectTrigger>
              <SelectContent>
                {(["veryHigh", "high", "normal"] as const).map((one) => (
                  <SelectItem key={one} value={one}>
                    {t(`level.${one}`)}
                  </SelectItem>
                ))}
              </SelectContent>
            </Select>
          )}
        </Field>
      </div>
    </DialogForm>
  );
}
