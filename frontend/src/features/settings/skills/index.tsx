"use client";
import { useState } from "react";
import { LateTexts } from "@/i18n";
import { Waiting } from "../parts";
import { useItem } from "../use-item";
import type { Installed } from "./api";
import { Gallery } from "./gallery";
import { SkillView } from "./skill-view";

export default function SkillsSection() {
  return (
    <LateTexts of="skills" fallback={<Waiting error={null} retry={() => undefined} rows={6} />}>
      <Skills />
    </LateTexts>
  );
}

function Skills() {
  const [name, open] = useItem();
  const [last, setLast] = useState<string | null>(null);
  /** What was installed just now, and is to be looked at. */
  const [installed, setInstalled] = useState<Installed | null>(null);
  const [isNew, setIsNew] = useState(false);
  const show = (next: string) => {
    setLast(next);
    setIsNew(false);
    open(next);
  };
  if (name === null)
    return (
      <Gallery
        last={last}
        onOpen={show}
        onInstalled={(one) => {
          setInstalled(one);
          show(one.skill_name);
        }}
        onMade={(one) => {
          show(one);
          setIsNew(true);
        }}
      />
    );
  return (
    <SkillView
      key={name}
      name={name}
      isNew={isNew}
      installed={installed?.skill_name === name ? installed : null}
      onReviewed={() => setInstalled(null)}
      onBack={() => open(null)}
    />
  );
}
