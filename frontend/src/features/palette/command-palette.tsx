"use client";
import { useRouter } from "next/navigation";
import { Suspense, useEffect, useState } from "react";
import { takeEarlyPalette } from "@/lib/early";
import { late, preload } from "@/lib/late";
import { settingsPath } from "@/lib/route";
import { SHORTCUTS, useShortcut } from "@/lib/shortcuts";
import { openPalette, useOpened } from "@/lib/palette";

// Not needed to show a page: loaded after it, before anybody asks.
const loadPalette = () => import("./palette");
const Palette = late(loadPalette);
const ShortcutHelp = late(() => import("./shortcut-help"));

/** Search and commands, one keystroke away. Also holds the list of shortcuts. */
export function CommandPalette() {
  const router = useRouter();
  const [open, setOpen] = useState(false);
  const [help, setHelp] = useState(false);
  useShortcut(SHORTCUTS.palette, () => setOpen((now) => !now));
  useShortcut(SHORTCUTS.help, () => setHelp(true));
  useShortcut(SHORTCUTS.settings, () => router.push(settingsPath()));
  useOpened((what) => (what === "help" ? setHelp(true) : setOpen(true)));
  useEffect(() => {
    preload(loadPalette);
    if (takeEarlyPalette()) openPalette();
  }, []);
  return (
    <Suspense>
      <Palette open={open} onOpenChange={setOpen} openHelp={() => setHelp(true)} />
      {help && <ShortcutHelp open onOpenChange={setHelp} />}
    </Suspense>
  );
}
