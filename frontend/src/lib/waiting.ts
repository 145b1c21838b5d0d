"use client";
import { useQuery } from "@tanstack/react-query";
import { waiting } from "./api";
import { keys } from "./keys";

/** The person's threads that wait for a decision or an answer, the newest first. */
export const useWaiting = () => useQuery({ queryKey: keys.waiting, queryFn: waiting });
