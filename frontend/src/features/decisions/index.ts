import { afterPage } from "@/lib/late";

/** How many conversations wait for the person; opens the list of them. Nothing while none does. */
export const WaitingButton = afterPage(() => import("./waiting-button"));
/** The list, and notices of what is new in it. */
export const Decisions = afterPage(() => import("./decisions"));
