"use client";
import { useState } from "react";
import { FormError, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { toast } from "@/ui/toast";
import { TextEditor } from "../text-editor";

interface SavedTextProps {
  filename: string;
  saved: string;
  placeholder: string;
  /** Characters. */
  limit: number;
  /** What it throws is shown. */
  onSave: (text: string) => Promise<unknown>;
}

/** A text with a button that saves it. What is being written stays when what is saved changes meanwhile. */
export function SavedText({ filename, saved, placeholder, limit, onSave }: SavedTextProps) {
  const t = useT("agents");
  const common = useT("common");
  const form = useSubmission();
  const [draft, setDraft] = useState<string | null>(null);
  const text = draft ?? saved;
  const save = async () => {
    await onSave(text);
    setDraft(null);
    toast.success(t("saved"));
  };
  return (
    <div className="flex flex-col gap-3">
      <TextEditor {...{ filename, saved, placeholder, limit }} value={text} onChange={setDraft} />
      <FormError message={form.message} />
      <Button
        size="sm"
        className="self-end"
        pending={form.pending}
        disabled={text.trim() === saved.trim() || text.length > limit}
        onClick={() => void form.submit(save)}
      >
        {common("save")}
      </Button>
    </div>
  );
}
