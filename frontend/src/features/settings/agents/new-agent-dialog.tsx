"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { prepareChat } from "@/lib/prepare-chat";
import { Dialog, DialogContent } from "@/ui/dialog";
import { Input } from "@/ui/input";
import { DialogForm, Field } from "../dialog-form";
import { create, isFree } from "./api";

/** In a conversation that ends with the agent saved, or by hand. */
export type How = "chat" | "form";

interface NewAgentDialogProps {
  /** null: closed. */
  how: How | null;
  onClose: () => void;
  onMade: (name: string) => void;
}

export function NewAgentDialog({ how, onClose, onMade }: NewAgentDialogProps) {
  return (
    <Dialog open={how !== null} onOpenChange={(open) => !open && onClose()}>
      <DialogContent className="sm:max-w-lg">
        {how && <NewAgentForm how={how} onMade={onMade} />}
      </DialogContent>
    </Dialog>
  );
}

const MAX_NAME = 64;

function NewAgentForm({ how, onMade }: { how: How; onMade: (name: string) => void }) {
  const t = useT("agents.making");
  const router = useRouter();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const inChat = how === "chat";
  const make = async () => {
    if (!(await isFree(name))) throw new Error(t("taken", { name }));
    if (inChat) {
      prepareChat({ agent: { name: name.toLowerCase(), setUp: true }, text: t("firstMessage") });
      router.push("/chats");
      return;
    }
    const made = await create({ name, description: description.trim() });
    await queries.invalidateQueries({ queryKey: keys.agents });
    onMade(made.name);
  };
  return (
    <DialogForm
      title={t("title")}
      text={t(inChat ? "chatText" : "formText")}
      confirm={t(inChat ? "start" : "create")}
      ready={name.trim() !== ""}
      onSubmit={make}
    >
      <Field label={t("name")} hint={t("nameHint")}>
        {(given) => (
          <Input
            {...given}
            autoFocus
            required
            autoCapitalize="none"
            spellCheck={false}
            maxLength={MAX_NAME}
            placeholder="editor"
            value={name}
            onChange={(event) => setName(event.target.value.replace(/[\s_]+/g, "-"))}
          />
        )}
      </Field>
      {!inChat && (
        <Field label={t("description")}>
          {(given) => (
            <Input
              {...given}
              maxLength={1024}
              placeholder={t("descriptionPlaceholder")}
              value={description}
              onChange={(event) => setDescription(event.target.value)}
            />
          )}
        </Field>
      )}
    </DialogForm>
  );
}
