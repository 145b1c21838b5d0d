"use client";
import Link from "next/link";
import { useT } from "@/i18n";
import { Logo } from "@/ui/logo";

export default function NotFound() {
  const t = useT("common");
  return (
    <main className="grid min-h-dvh place-items-center p-6 text-center">
      <div className="max-w-sm space-y-3">
        <Logo className="mx-auto size-10 text-primary" />
        <h1 className="text-2xl font-semibold">{t("notFound")}</h1>
        <p className="text-muted-foreground">{t("notFoundText")}</p>
        <Link
          href="/chats"
          className="inline-block py-2 font-medium text-primary underline-offset-4 hover:underline"
        >
          {t("toChats")}
        </Link>
      </div>
    </main>
  );
}
