import type { Reporter, TestModule } from "vitest/node";

/** The last line of a run: how many passed, how many did not. */
export default class Count implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]) {
    const all = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = all.filter((test) => test.result().state === "passed").length;
    const broken = modules.filter((module) => module.errors().length > 0).length + errors.length;
    const failed = all.filter((test) => test.result().state === "failed").length + broken;
    console.log(`${passed} passed, ${failed} failed`);
  }
}
