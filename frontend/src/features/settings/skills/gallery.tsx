"use client";
import { BookOpenText, FilePlus2, KeyRound, PackagePlus, Plus, Search } from "lucide-react";
import { useState } from "react";
import { useLocale, useT } from "@/i18n";
import { aboutSkill, useSkills, type Skill } from "@/lib/skills";
import { Button } from "@/ui/button";
import { DropdownMenu, DropdownMenuContent, DropdownMenuItem, DropdownMenuTrigger } from "@/ui/dropdown-menu";
import { EmptyState } from "@/ui/empty-state";
import { ItemLink } from "../parts/item";
import { Group, Panel, SearchField, Waiting } from "../parts";
import type { Installed } from "./api";
import { EnabledSwitch } from "./enabled-switch";
import { InstallDialog } from "./install-dialog";
import { NewSkillDialog } from "./new-skill-dialog";
import { Suggestions } from "./suggestions";

interface GalleryProps {
  /** The skill that was looked at just now. */
  last: string | null;
  onOpen: (name: string) => void;
  onInstalled: (installed: Installed) => void;
  onMade: (name: string) => void;
}

export function Gallery({ last, onOpen, onInstalled, onMade }: GalleryProps) {
  const t = useT("skills");
  const [locale] = useLocale();
  const { data, error, refetch } = useSkills();
  const [query, setQuery] = useState("");
  const [dialog, setDialog] = useState<"install" | "new" | null>(null);
  if (!data) return <Waiting error={error} retry={() => void refetch()} rows={6} />;
  const found = data.filter((skill) => matches(skill, query, locale));
  const groups = (["custom", "public"] as const)
    .map((category) => [category, found.filter((skill) => skill.category === category)] as const)
    .filter(([category, some]) => some.length > 0 || (category === "custom" && !query));
  return (
    <>
      <div className="flex items-center gap-2">
        <SearchField label={t("search")} value={query} onChange={setQuery} />
        <DropdownMenu>
          <DropdownMenuTrigger asChild>
            <Button size="sm" className="h-9 pointer-coarse:h-11">
              <Plus aria-hidden />
              {t("add")}
            </Button>
          </DropdownMenuTrigger>
          <DropdownMenuContent align="end">
            <DropdownMenuItem onSelect={() => setDialog("install")}>
              <PackagePlus aria-hidden />
              {t("install")}
            </DropdownMenuItem>
            <DropdownMenuItem onSelect={() => setDialog("new")}>
              <FilePlus2 aria-hidden />
              {t("write")}
            </DropdownMenuItem>
          </DropdownMenuContent>
        </DropdownMenu>
      </div>
      {!query && <Suggestions />}
      {groups.length === 0 && (
        <Panel>
          <EmptyState icon={<Search />} title={t("notFound")} />
        </Panel>
      )}
      {groups.map(([category, some]) => (
        <Group key={category} title={t(`category.${category}`)}>
          {some.length === 0 ? (
            <Panel>
              <EmptyState icon={<BookOpenText />} title={t("none")} text={t("noneText")} className="py-8" />
            </Panel>
          ) : (
            <Panel role="list">
              {some.map((skill) => (
                <SkillRow key={skill.name} skill={skill} wasOpen={skill.name === last} onOpen={onOpen} />
              ))}
            </Panel>
          )}
        </Group>
      ))}
      <InstallDialog
        open={dialog === "install"}
        onClose={() => setDialog(null)}
        onInstalled={(installed) => {
          setDialog(null);
          onInstalled(installed);
        }}
      />
      <NewSkillDialog
        open={dialog === "new"}
        onClose={() => setDialog(null)}
        onMade={(name) => {
          setDialog(null);
          onMade(name);
        }}
      />
    </>
  );
}

const matches = (skill: Skill, query: string, locale: string) =>
  query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => `${skill.name} ${aboutSkill(skill, locale)}`.toLowerCase().includes(word));

interface SkillRowProps {
  skill: Skill;
  wasOpen: boolean;
  onOpen: (name: string) => void;
}

function SkillRow({ skill, wasOpen, onOpen }: SkillRowProps) {
  const t = useT("skills");
  const [locale] = useLocale();
  return (
    <div
      role="listitem"
      className="relative flex items-center gap-4 px-4 py-3 transition-colors first:rounded-t-xl last:rounded-b-xl hover:bg-accent/40 sm:px-5"
    >
      <div className="min-w-0 flex-1">
        <div className="flex items-center gap-2">
          <ItemLink name={skill.name} wasOpen={wasOpen} onOpen={onOpen}>
            {skill.name}
          </ItemLink>
          {skill.secrets.length > 0 && (
            <KeyRound aria-label={t("needsSecrets")} className="size-3.5 shrink-0 text-muted-foreground" />
          )}
        </div>
        <p className="mt-0.5 line-clamp-2 text-[13px] leading-relaxed text-muted-foreground">
          {aboutSkill(skill, locale)}
        </p>
      </div>
      <div className="relative">
        <EnabledSwitch skill={skill} />
      </div>
    </div>
  );
}
