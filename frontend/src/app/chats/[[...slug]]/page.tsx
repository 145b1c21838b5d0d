import { Suspense } from "react";
import { ChatPage, Shell } from "@/features/workspace";

/** The export has one page for all conversations; the gateway answers `/chats/<id>` with it, and the browser reads the id. */
export const generateStaticParams = () => [{ slug: [] as string[] }];

export default function Page() {
  return (
    <Suspense fallback={<Shell />}>
      <ChatPage />
    </Suspense>
  );
}
