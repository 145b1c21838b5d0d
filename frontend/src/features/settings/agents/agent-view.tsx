"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Brain, MessageSquarePlus, Trash2 } from "lucide-react";
import Link from "next/link";
import { useState } from "react";
import { useT } from "@/i18n";
import { titleOf } from "@/lib/agents";
import { keys } from "@/lib/keys";
import { settingsPath } from "@/lib/route";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { IconButton } from "@/ui/icon-button";
import { Tabs, TabsContent, TabsList, TabsTrigger } from "@/ui/tabs";
import { toast } from "@/ui/toast";
import { ItemHead } from "../parts/item";
import { Note } from "../parts";
import { AgentChats } from "./agent-chats";
import { AgentForm } from "./agent-form";
import { AgentVersions } from "./agent-versions";
import { agentKeys, change, remove, versions, type Agent } from "./api";
import { SavedText } from "../parts/saved-text";
import { useChatWith } from "./use-chat-with";

export const MAX_SOUL = 20_000;

export function AgentView({ agent, onBack }: { agent: Agent; onBack: () => void }) {
  const t = useT("agents");
  const { name } = agent;
  const title = titleOf(agent);
  const queries = useQueryClient();
  const [deleting, setDeleting] = useState(false);
  const history = useQuery({ queryKey: agentKeys.versions(name), queryFn: () => versions(name) });
  const chatWith = useChatWith();
  const changed = () => queries.invalidateQueries({ queryKey: keys.agents });
  const isShared = history.data?.length === 0;
  const drop = async () => {
    try {
      await remove(name);
    } catch (problem) {
      toast.error((problem as Error).message);
      throw problem;
    }
    toast.success(t("deleted", { name: title }));
    onBack();
    await queries.invalidateQueries({ queryKey: keys.agents, exact: true });
  };
  return (
    <>
      <ItemHead
        title={title}
        text={agent.description}
        back={t("back")}
        onBack={onBack}
        badges={agent.display_name && <Badge variant="outline">{name}</Badge>}
      >
        <Button size="sm" onClick={() => chatWith(name)}>
          <MessageSquarePlus aria-hidden />
          {t("chatWith", { name: title })}
        </Button>
        <Button size="sm" variant="outline" asChild>
          <Link href={`${settingsPath("memory")}?${new URLSearchParams({ agent: name })}`}>
            <Brain aria-hidden />
            {t("memory")}
          </Link>
        </Button>
        {!isShared && (
          <IconButton
            label={t("delete", { name: title })}
            variant="outline"
            onClick={() => setDeleting(true)}
          >
            <Trash2 aria-hidden />
          </IconButton>
        )}
      </ItemHead>
      {isShared && <Note>{t("shared")}</Note>}
      <Tabs defaultValue="soul">
        <TabsList aria-label={t("parts")}>
          <TabsTrigger value="soul">{t("tab.soul")}</TabsTrigger>
          <TabsTrigger value="settings">{t("tab.settings")}</TabsTrigger>
          <TabsTrigger value="chats">{t("tab.chats")}</TabsTrigger>
          <TabsTrigger value="versions">{t("tab.versions")}</TabsTrigger>
        </TabsList>
        <TabsContent value="soul" className="flex flex-col gap-3 pt-4">
          <p className="text-[13px] leading-relaxed text-muted-foreground">{t("soulText")}</p>
          <SavedText
            filename="SOUL.md"
            owner={name}
            saved={agent.soul}
            placeholder={t("soulPlaceholder")}
            limit={MAX_SOUL}
            onSave={async (soul) => {
              await change(name, { soul });
              await changed();
            }}
          />
        </TabsContent>
        <TabsContent value="settings" className="pt-4">
          <AgentForm agent={agent} onSaved={changed} />
        </TabsContent>
        <TabsContent value="chats" className="pt-4">
          <AgentChats name={name} />
        </TabsContent>
        <TabsContent value="versions" className="pt-4">
          <AgentVersions name={name} versions={history} onChanged={changed} />
        </TabsContent>
      </Tabs>
      <ConfirmDialog
        open={deleting}
        onOpenChange={setDeleting}
        title={t("deleteTitle", { name: title })}
        text={t("deleteText")}
        confirm={t("deleteConfirm")}
        destructive
        onConfirm={drop}
      />
    </>
  );
}
