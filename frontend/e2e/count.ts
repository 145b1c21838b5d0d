import type { FullResult, Reporter, TestCase, TestResult } from "@playwright/test/reporter";

/** The last line of a run: how many passed, how many did not. */
export default class Count implements Reporter {
  private readonly outcomes = new Map<TestCase, TestResult["status"]>();

  onTestEnd(test: TestCase, result: TestResult) {
    this.outcomes.set(test, result.status);
  }

  onEnd(_result: FullResult) {
    const all = [...this.outcomes.values()];
    const passed = all.filter((status) => status === "passed").length;
    const skipped = all.filter((status) => status === "skipped").length;
    console.log(`${passed} passed, ${all.length - passed - skipped} failed`);
  }
}
