import { Suspense } from "react";
import { SetupPage } from "@/features/auth";

export default function Page() {
  return (
    <Suspense fallback={<div className="h-dvh bg-background" />}>
      <SetupPage />
    </Suspense>
  );
}
