"use client";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { models, type Model } from "./api";
import { keys } from "./keys";

export const modelsQuery = queryOptions({ queryKey: keys.models, queryFn: models, staleTime: 60_000 });

/** The models of the server; the same answer for all who ask. */
export const useModels = () => useQuery(modelsQuery);

/** The server's scripted stand-in. */
export const DEMO = "demo";

/** Nothing but the stand-in answers: no real model is connected. */
export const isOnlyDemo = (models: readonly Model[]) =>
  models.length > 0 && models.every(({ model }) => model === DEMO);
