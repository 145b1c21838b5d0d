import { Suspense } from "react";
import { SettingsRoute } from "./route-section";

export const generateStaticParams = () => [{ slug: [] as string[] }];

export default function Page() {
  return (
    <Suspense fallback={<div className="h-dvh bg-background" />}>
      <SettingsRoute />
    </Suspense>
  );
}
