"use client";
import { usePathname } from "next/navigation";
import { AuthGuard } from "@/features/auth";
import { SettingsPage } from "@/features/settings";

export function SettingsRoute() {
  const section = /^\/settings\/([^/]+)/.exec(usePathname())?.[1] ?? null;
  return (
    <AuthGuard>
      <SettingsPage section={section} />
    </AuthGuard>
  );
}
