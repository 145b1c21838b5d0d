"use client";
import {
  Archive,
  ArchiveX,
  BookOpen,
  CircleHelp,
  Download,
  FileArchive,
  FolderOpen,
  Languages,
  Link,
  LogOut,
  MessageCircleDashed,
  Moon,
  PanelLeft,
  Paperclip,
  Pencil,
  Settings,
  Search,
  Sparkles,
  SquarePen,
  Sun,
  SunMoon,
  Trash2,
  type LucideIcon,
} from "lucide-react";
import { useTheme } from "next-themes";
import { useRouter } from "next/navigation";
import { toast } from "@/ui/toast";
import { signOut, useAccount } from "@/features/auth";
import { SECTIONS } from "@/features/settings";
import { openArchivedView, threadLink, useSidebar, useThreadActions } from "@/features/threads";
import { downloadThread } from "@/lib/export";
import { attachFiles, findInChat } from "@/lib/compose";
import { choose } from "@/lib/run-settings";
import { draftThreadId } from "@/lib/draft-thread";
import { startChat } from "@/lib/start-chat";
import { LOCALES, useLocale, useShownLocale, useT, type Locale } from "@/i18n";
import { openThread, settingsPath, threadPath, usePanel, useThreadId } from "@/lib/route";
import { SHORTCUTS } from "@/lib/shortcuts";
import { copyText } from "@/ui/copy-button";

export interface PaletteCommand {
  id: string;
  label: string;
  icon: LucideIcon;
  /** Also found by these words. */
  words?: string;
  combo?: string;
  run: () => void;
}

export interface PaletteCommands {
  /** For the open chat. */
  chat: PaletteCommand[];
  actions: PaletteCommand[];
  settings: PaletteCommand[];
}

/** Opens a chat, also from a page without chats. */
export function useGoTo() {
  const router = useRouter();
  const inChats = () => /^\/chats(\/|$)/.test(window.location.pathname);
  return (id: string | null) => (inChats() ? openThread(id) : router.push(threadPath(id)));
}

export function useCommands(openHelp: () => void, rename: () => void): PaletteCommands {
  const t = useT("palette");
  const threads = useT("threads");
  const shown = useShownLocale();
  const isAdmin = useAccount().data?.system_role === "admin";
  const router = useRouter();
  const goTo = useGoTo();
  const panel = usePanel();
  const threadId = useThreadId();
  const { setTheme } = useTheme();
  const [locale, setLocale] = useLocale();
  const { toggle } = useSidebar();
  const chats = useThreadActions();

  const copyLink = async (id: string) => {
    if (await copyText(threadLink(id))) toast.success(threads("linkCopied"));
    else toast.error(threads("linkFailed"));
  };
  const leave = () =>
    signOut().catch((error: Error) => toast.error(threads("signOutFailed"), { description: error.message }));
  const chat: PaletteCommand[] = threadId
    ? [
        {
          id: "files",
          label: t("files"),
          icon: FolderOpen,
          combo: SHORTCUTS.files,
          run: () => panel.set(""),
        },
        {
          id: "find",
          label: t("find"),
          icon: Search,
          combo: SHORTCUTS.find,
          run: () => requestAnimationFrame(findInChat), // when the palette has given the focus back
        },
        {
          id: "export",
          label: t("export"),
          icon: Download,
          words: t("words.export"),
          run: () => downloadThread(threadId, "md"),
        },
        {
          id: "zip",
          label: t("exportZip"),
          icon: FileArchive,
          words: `zip ${t("words.export")}`,
          run: () => downloadThread(threadId, "zip"),
        },
        {
          id: "link",
          label: t("copyLink"),
          icon: Link,
          words: t("words.link"),
          run: () => void copyLink(threadId),
        },
        { id: "rename", label: t("rename"), icon: Pencil, words: t("words.rename"), run: rename },
        {
          id: "archive",
          label: t("archive"),
          icon: Archive,
          run: () => void chats.archive([threadId], true).catch(() => {}),
        },
        {
          id: "delete",
          label: t("delete"),
          icon: Trash2,
          words: t("words.delete"),
          run: () => chats.remove([threadId]),
        },
      ]
    : [];
  const actions: PaletteCommand[] = [
    {
      id: "new",
      label: t("newChat"),
      icon: SquarePen,
      words: t("words.new"),
      combo: SHORTCUTS.newChat,
      run: () => (window.location.pathname.startsWith("/chats") ? startChat() : goTo(null)),
    },
    {
      id: "temporary",
      label: t("temporary"),
      icon: MessageCircleDashed,
      words: t("words.temporary"),
      run: () => {
        choose(draftThreadId(), { temporary: true });
        goTo(null);
      },
    },
    {
      id: "attach",
      label: t("attach"),
      icon: Paperclip,
      words: t("words.attach"),
      run: () => requestAnimationFrame(attachFiles),
    },
    {
      id: "archived",
      label: threads("archivedChats"),
      icon: ArchiveX,
      words: t("words.archived"),
      run: openArchivedView,
    },
    {
      id: "sidebar",
      label: t("toggleSidebar"),
      icon: PanelLeft,
      combo: SHORTCUTS.toggleSidebar,
      run: toggle,
    },
    {
      id: "light",
      label: t("theme.light"),
      icon: Sun,
      words: t("words.theme"),
      run: () => setTheme("light"),
    },
    { id: "dark", label: t("theme.dark"), icon: Moon, words: t("words.theme"), run: () => setTheme("dark") },
    {
      id: "system",
      label: t("theme.system"),
      icon: SunMoon,
      words: t("words.theme"),
      run: () => setTheme("system"),
    },
    ...Object.entries(LOCALES)
      .filter(([code]) => code !== locale)
      .map(([code, name]) => ({
        id: `language-${code}`,
        label: t("language", { name }),
        icon: Languages,
        words: "language 语言",
        run: () => setLocale(code as Locale),
      })),
    { id: "help", label: t("help"), icon: CircleHelp, combo: SHORTCUTS.help, run: openHelp },
    {
      id: "docs",
      label: t("docs"),
      icon: BookOpen,
      words: t("words.docs"),
      run: () => router.push(`${settingsPath("about")}?name=workspace`),
    },
    {
      id: "changes",
      label: threads("changes"),
      icon: Sparkles,
      run: () => router.push(`${settingsPath("about")}?name=changes`),
    },
    {
      id: "signOut",
      label: threads("signOut"),
      icon: LogOut,
      words: t("words.signOut"),
      run: () => void leave(),
    },
  ];
  const settings = SECTIONS.filter((section) => isAdmin || !section.adminOnly).map((section) => ({
    id: `settings-${section.id}`,
    label: section.title[shown],
    icon: Settings,
    words: `${section.id} ${t("settings")} ${section.words?.[shown] ?? ""}`,
    run: () => router.push(settingsPath(section.id)),
  }));
  return { chat, actions, settings };
}
