import { clsx, type ClassValue } from "clsx";
import { twMerge } from "tailwind-merge";

/** Class names joined; of two that contradict each other the later one holds. */
export const cn = (...classes: ClassValue[]) => twMerge(clsx(classes));
