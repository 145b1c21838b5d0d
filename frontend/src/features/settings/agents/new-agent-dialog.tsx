"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { prepareChat } from "@/lib/prepare-chat";
import { Dialog, DialogContent } from "@/ui/dialog";
import { Input } from "@/ui/input";
import { DialogForm, Field } from "../parts/dialog-form";
import { agentId } from "./agent-id";
import { create, isFree } from "./api";

/** In a conversation that ends with the agent saved, or by hand. */
export type How = "chat" | "form";

interface NewAgentDialogProps {
  /** Ids of the agents that there are. */
  taken: readonly string[];
  /** null: closed. */
  how: How | null;
  onClose: () => void;
  onMade: (name: string) => void;
}

export function NewAgentDialog({ how, taken, onClose, onMade }: NewAgentDialogProps) {
  return (
    <Dialog open={how !== null} onOpenChange={(open) => !open && onClose()}>
      <DialogContent className="sm:max-w-lg">
        {how && <NewAgentForm how={how} taken={taken} onMade={onMade} />}
      </DialogContent>
    </Dialog>
  );
}

const MAX_NAME = 64;

interface NewAgentFormProps extends Pick<NewAgentDialogProps, "taken" | "onMade"> {
  how: How;
}

function NewAgentForm({ how, taken, onMade }: NewAgentFormProps) {
  const t = useT("agents.making");
  const router = useRouter();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [ownId, setId] = useState<string | null>(null);
  const id = ownId ?? (name.trim() && agentId(name, taken));
  const [description, setDescription] = useState("");
  const inChat = how === "chat";
  const make = async () => {
    const title = name.trim();
    const isTitled = title !== id;
    if (!(await isFree(id))) throw new Error(t("taken", { name: id }));
    if (inChat) {
      const text = isTitled ? t("firstMessageNamed", { name: title }) : t("firstMessage");
      prepareChat({ agent: { name: id.toLowerCase(), setUp: true }, text });
      router.push("/chats");
      return;
    }
    const made = await create({
      name: id,
      display_name: isTitled ? title : "",
      description: description.trim(),
    });
    await queries.invalidateQueries({ queryKey: keys.agents });
    onMade(made.name);
  };
  return (
    <DialogForm
      title={t("title")}
      text={t(inChat ? "chatText" : "formText")}
      confirm={t(inChat ? "start" : "create")}
      ready={name.trim() !== "" && id !== ""}
      onSubmit={make}
    >
      <Field label={t("name")}>
        {(given) => (
          <Input
            {...given}
            autoFocus
            required
            spellCheck={false}
            maxLength={MAX_NAME}
            placeholder={t("namePlaceholder")}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label={t("id")} hint={t("idHint")}>
        {(given) => (
          <Input
            {...given}
            required
            autoCapitalize="none"
            spellCheck={false}
            maxLength={MAX_NAME}
            className="font-mono text-[13px]"
            value={id}
            onChange={(event) => setId(event.target.value.replace(/[\s_]+/g, "-"))}
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
