"use client";
import { useState } from "react";
import { useItem } from "../parts/use-item";
import type { Installed } from "./api";
import { Gallery } from "./gallery";
import { SkillView } from "./skill-view";

export default function SkillsSection() {
  const [name, open] = useItem();
  const [last, setLast] = useState<string | null>(null);
  /** A skill that was just installed and needs a look. */
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
