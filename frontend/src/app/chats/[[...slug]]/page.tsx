import { Suspense } from "react";
import { ChatPage } from "@/features/workspace";

/** The export has one page for all conversations; the gateway answers `/chats/<id>` with it, and the browser reads the id. */
export const generateStaticParams = () => [{ slug: [] as string[] }];

export default function Page() {
  return (
    <Suspense fallback={<div className="h-dvh bg-background" />}>
      <ChatPage />
    </Suspense>
  );
}
