"use client";
import {
  CircleHelp,
  Download,
  FileArchive,
  FolderOpen,
  Languages,
  Link,
  Moon,
  PanelLeft,
  Settings,
  Search,
  SquarePen,
  Sun,
  SunMoon,
  type LucideIcon,
} from "lucide-react";
import { useTheme } from "next-themes";
import { useRouter } from "next/navigation";
import { toast } from "@/ui/toast";
import { useAccount } from "@/features/auth";
import { threadLink, useSidebar } from "@/features/threads";
import { downloadThread } from "@/lib/export";
import { findInChat } from "@/lib/compose";
import { startChat } from "@/lib/start-chat";
import { LOCALES, useLocale, useT, type Locale } from "@/i18n";
import { openThread, SETTINGS, settingsPath, threadPath, usePanel, useThreadId } from "@/lib/route";
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

/** Opens a chat, also from a page without chats. */
export function useGoTo() {
  const router = useRouter();
  const inChats = () => /^\/chats(\/|$)/.test(window.location.pathname);
  return (id: string | null) => (inChats() ? openThread(id) : router.push(threadPath(id)));
}

export function useCommands(openHelp: () => void): { actions: PaletteCommand[]; settings: PaletteCommand[] } {
  const t = useT("palette");
  const threads = useT("threads");
  const sections = useT("sections");
  const isAdmin = useAccount().data?.system_role === "admin";
  const router = useRouter();
  const goTo = useGoTo();
  const panel = usePanel();
  const threadId = useThreadId();
  const { setTheme } = useTheme();
  const [locale, setLocale] = useLocale();
  const { toggle } = useSidebar();

  const copyLink = async (id: string) => {
    if (await copyText(threadLink(id))) toast.success(threads("linkCopied"));
    else toast.error(threads("linkFailed"));
  };
  const ofThread: PaletteCommand[] = threadId
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
          words: "export markdown",
          run: () => downloadThread(threadId, "md"),
        },
        {
          id: "zip",
          label: t("exportZip"),
          icon: FileArchive,
          words: "export zip",
          run: () => downloadThread(threadId, "zip"),
        },
        {
          id: "link",
          label: t("copyLink"),
          icon: Link,
          words: "share url",
          run: () => void copyLink(threadId),
        },
      ]
    : [];
  const actions: PaletteCommand[] = [
    {
      id: "new",
      label: t("newChat"),
      icon: SquarePen,
      combo: SHORTCUTS.newChat,
      run: () => (window.location.pathname.startsWith("/chats") ? startChat() : goTo(null)),
    },
    ...ofThread,
    {
      id: "sidebar",
      label: t("toggleSidebar"),
      icon: PanelLeft,
      combo: SHORTCUTS.toggleSidebar,
      run: toggle,
    },
    { id: "light", label: t("theme.light"), icon: Sun, words: "theme", run: () => setTheme("light") },
    { id: "dark", label: t("theme.dark"), icon: Moon, words: "theme", run: () => setTheme("dark") },
    { id: "system", label: t("theme.system"), icon: SunMoon, words: "theme", run: () => setTheme("system") },
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
  ];
  const settings = SETTINGS.filter((section) => isAdmin || section !== "users").map((section) => ({
    id: `settings-${section}`,
    label: sections(section),
    icon: Settings,
    words: `${section} ${t("settings")}`,
    run: () => router.push(settingsPath(section)),
  }));
  return { actions, settings };
}
