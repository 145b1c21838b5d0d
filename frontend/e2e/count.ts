import type { FullResult, Reporter, TestCase, TestResult } from "@playwright/test/reporter";

/** How many tests may fail once and pass when they are run again. */
const UNSTABLE = 2;

/** The last lines of a run: which tests were unstable, how many passed, how many did not. */
export default class Count implements Reporter {
  private readonly tests = new Map<TestCase, TestResult["status"]>();

  onTestEnd(test: TestCase, result: TestResult) {
    this.tests.set(test, result.status);
  }

  onEnd(_result: FullResult): Promise<{ status: "failed" } | undefined> {
    const unstable = [...this.tests.keys()].filter((test) => test.outcome() === "flaky");
    for (const test of unstable) console.log(`unstable: ${test.titlePath().join(" › ")}`);
    console.log(`unstable tests: ${unstable.length}, at most ${UNSTABLE} are allowed`);
    const all = [...this.tests.values()];
    const passed = all.filter((status) => status === "passed").length;
    console.log(`${passed} passed, ${all.length - passed} failed`);
    return Promise.resolve(unstable.length > UNSTABLE ? { status: "failed" } : undefined);
  }
}
