"use client";
import { BookOpenText, Bot } from "lucide-react";
import Link from "next/link";
import { useRouter } from "next/navigation";
import { useT } from "@/i18n";
import { settingsPath } from "@/lib/route";

const LINKS = [
  ["agents", Bot],
  ["skills", BookOpenText],
] as const;

/** The ways to what is one's own. */
export default function SidebarLinks({ onOpen }: { onOpen: () => void }) {
  const t = useT("threads.links");
  const router = useRouter();
  return (
    <ul>
      {LINKS.map(([section, Icon]) => (
        <li key={section}>
          <Link
            href={settingsPath(section)}
            onClick={onOpen}
            // Not with every page.
            prefetch={false}
            onPointerEnter={() => router.prefetch(settingsPath(section))}
            onFocus={() => router.prefetch(settingsPath(section))}
            className="flex h-8 items-center gap-2.5 rounded-lg px-2.5 text-[13px] transition-colors hover:bg-sidebar-accent pointer-coarse:h-11"
          >
            <Icon aria-hidden className="size-4 text-muted-foreground" />
            {t(section)}
          </Link>
        </li>
      ))}
    </ul>
  );
}
