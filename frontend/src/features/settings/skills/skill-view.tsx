"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Ellipsis, MessageSquarePlus, Pencil, Trash2 } from "lucide-react";
import { useRouter } from "next/navigation";
import { useId, useState } from "react";
import { useLocale, useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { prepareChat } from "@/lib/prepare-chat";
import { aboutSkill } from "@/lib/skills";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { DropdownMenu, DropdownMenuContent, DropdownMenuItem, DropdownMenuTrigger } from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { Label } from "@/ui/label";
import { Tabs, TabsContent, TabsList, TabsTrigger } from "@/ui/tabs";
import { toast } from "@/ui/toast";
import { ItemHead } from "../parts/item";
import { Waiting } from "../parts";
import { Abilities } from "./abilities";
import { files, remove, skill, skillKeys, type Installed } from "./api";
import { EnabledSwitch, useSwitchSkill } from "./enabled-switch";
import { ReviewBar } from "./review-bar";
import { Secrets } from "./secrets";
import { SkillEditor } from "./skill-editor";
import { SkillFileList, SkillMarkdown } from "./skill-files";
import { SkillHistory } from "./skill-history";

interface SkillViewProps {
  name: string;
  /** It was made just now, and is to be written. */
  isNew: boolean;
  /** It was installed just now, and is to be looked at before it is switched on. */
  installed: Installed | null;
  onReviewed: () => void;
  onBack: () => void;
}

export function SkillView({ name, isNew, installed, onReviewed, onBack }: SkillViewProps) {
  const t = useT("skills");
  const [locale] = useLocale();
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({ queryKey: skillKeys.one(name), queryFn: () => skill(name) });
  const folder = useQuery({ queryKey: skillKeys.files(name), queryFn: () => files(name) });
  const switchSkill = useSwitchSkill();
  const [editing, setEditing] = useState(isNew);
  const [deleting, setDeleting] = useState(false);
  const [tab, setTab] = useState("text");
  const use = useInNewChat();
  const id = useId();
  if (!data) return <Waiting error={error} retry={() => void refetch()} rows={5} />;
  const isOwn = data.category === "custom";
  const drop = async () => {
    try {
      await remove(name);
    } catch (problem) {
      toast.error((problem as Error).message);
      throw problem;
    }
    toast.success(t("deleted", { name }));
    onReviewed();
    onBack();
    await queries.invalidateQueries({ queryKey: keys.skills, refetchType: "none" });
    await queries.refetchQueries({ queryKey: keys.skills, exact: true });
  };
  const switchOn = async () => {
    if (await switchSkill(name, true)) onReviewed();
  };
  return (
    <>
      <ItemHead
        title={name}
        text={aboutSkill(data, locale)}
        back={t("back")}
        onBack={onBack}
        badges={<Badge variant={isOwn ? "default" : "secondary"}>{t(`badge.${data.category}`)}</Badge>}
      >
        <div className="mr-2 flex items-center gap-2.5">
          <EnabledSwitch skill={data} id={id} />
          <Label htmlFor={id}>{t(data.enabled ? "on" : "off")}</Label>
        </div>
        <Button size="sm" disabled={!data.enabled} onClick={() => use(name)}>
          <MessageSquarePlus aria-hidden />
          {t("useInChat")}
        </Button>
        {isOwn && !editing && (
          <DropdownMenu>
            <DropdownMenuTrigger asChild>
              <IconButton label={t("more", { name })} variant="outline">
                <Ellipsis aria-hidden />
              </IconButton>
            </DropdownMenuTrigger>
            <DropdownMenuContent align="end">
              <DropdownMenuItem onSelect={() => setEditing(true)}>
                <Pencil aria-hidden />
                {t("edit")}
              </DropdownMenuItem>
              <DropdownMenuItem destructive onSelect={() => setDeleting(true)}>
                <Trash2 aria-hidden />
                {t("delete")}
              </DropdownMenuItem>
            </DropdownMenuContent>
          </DropdownMenu>
        )}
      </ItemHead>
      {installed && !data.enabled && !editing && (
        <ReviewBar installed={installed} onSwitchOn={switchOn} onRemove={() => setDeleting(true)} />
      )}
      {editing ? (
        <SkillEditor skill={data} onDone={() => setEditing(false)} />
      ) : (
        <>
          <Abilities
            skill={data}
            folder={folder.data}
            onFiles={() => setTab("files")}
            onSecrets={() => setTab("secrets")}
          />
          <Tabs value={tab} onValueChange={setTab}>
            <TabsList aria-label={t("parts")}>
              <TabsTrigger value="text">{t("tab.text")}</TabsTrigger>
              <TabsTrigger value="files">{t("tab.files", { n: folder.data?.files.length ?? 0 })}</TabsTrigger>
              {data.secrets.length > 0 && <TabsTrigger value="secrets">{t("tab.secrets")}</TabsTrigger>}
              {isOwn && <TabsTrigger value="history">{t("tab.history")}</TabsTrigger>}
            </TabsList>
            <TabsContent value="text" className="pt-4">
              <SkillMarkdown text={data.content} />
            </TabsContent>
            <TabsContent value="files" className="pt-4">
              <SkillFileList name={name} folder={folder} />
            </TabsContent>
            <TabsContent value="secrets" className="pt-4">
              <Secrets skill={data} />
            </TabsContent>
            <TabsContent value="history" className="pt-4">
              <SkillHistory name={name} />
            </TabsContent>
          </Tabs>
        </>
      )}
      <ConfirmDialog
        open={deleting}
        onOpenChange={setDeleting}
        title={t("deleteTitle", { name })}
        text={t("deleteText")}
        confirm={t("delete")}
        destructive
        onConfirm={drop}
      />
    </>
  );
}

/** Opens a new chat whose message begins with the skill. */
function useInNewChat() {
  const router = useRouter();
  return (skill: string) => {
    prepareChat({ skill });
    router.push("/chats");
  };
}
