"use client";
import { FormError, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { toast } from "@/ui/toast";
import { useTextDraft } from "@/lib/text-draft";
import { TextEditor } from "./text-editor";

interface SavedTextProps {
  filename: string;
  /** Of whom: each has a draft of its own. */
  owner: string;
  saved: string;
  placeholder: string;
  /** Characters. */
  limit: number;
  /** Errors that it throws are shown. */
  onSave: (text: string) => Promise<unknown>;
}

/** A text with a button that saves it. */
export function SavedText({ filename, owner, saved, placeholder, limit, onSave }: SavedTextProps) {
  const t = useT("settings.editor");
  const common = useT("common");
  const form = useSubmission();
  const [text, write, forget] = useTextDraft(`${owner}/${filename}`, saved);
  const save = async () => {
    await onSave(text);
    forget();
    toast.success(t("saved"));
  };
  return (
    <div className="flex flex-col gap-3">
      <TextEditor {...{ filename, saved, placeholder, limit }} value={text} onChange={write} />
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
