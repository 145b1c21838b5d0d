import { Suspense } from "react";
import { LoginPage } from "@/features/auth";

export default function Page() {
  return (
    <Suspense fallback={<div className="h-dvh bg-background" />}>
      <LoginPage />
    </Suspense>
  );
}
