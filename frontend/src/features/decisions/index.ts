import { afterPage } from "@/lib/late";

/** Number of conversations that wait for the person; opens their list. Renders nothing if there are none. */
export const WaitingButton = afterPage(() => import("./waiting-button"));
/** The list, and notices of what is new in it. */
export const Decisions = afterPage(() => import("./decisions"));
