"use client";
import { useRouter } from "next/navigation";
import { useEffect } from "react";

/** The root opens the workspace. */
export default function Home() {
  const router = useRouter();
  useEffect(() => router.replace("/chats"), [router]);
  return <div className="h-dvh bg-background" />;
}
