/** Live events of sub-agents, and the run's events about them. Kept until a view follows them. */
import type { ProtocolEvent } from "./protocol";

export class ChildEvents {
  private kept: ProtocolEvent[] = [];
  private follower: ((events: readonly ProtocolEvent[]) => void) | null = null;

  add(events: readonly ProtocolEvent[]) {
    const ours = events.filter(({ method, params }) => params.namespace.length || method === "custom");
    if (!ours.length) return;
    if (this.follower) this.follower(ours);
    else this.kept.push(...ours);
  }

  /** From the first one on; there is one who follows. */
  follow(follower: (events: readonly ProtocolEvent[]) => void) {
    this.follower = follower;
    follower(this.kept.splice(0));
  }
}
